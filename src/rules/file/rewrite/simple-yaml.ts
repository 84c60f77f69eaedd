/**
 * Renders simple values, which need no quotes, as block YAML in the style of the yaml package. Most rules are such values, and
 * the package would take many times longer to render them and to verify the result.
 */
import { sourceTextOf } from '../../../core/json/source-text.js'
import { isObject } from '../../../validation/fields.js'

/** Plain scalars that YAML always parses as strings: words and durations, but not numbers. */
const simpleText = /^(?:[A-Za-z/][A-Za-z0-9/_.*{}-]*|[1-9][0-9]*(?:ms|s|m|h|d))$/
const reserved = /^(?:null|true|false)$/i

/** Lines after the first start with `indent`. Returns undefined if the value is not simple. */
export function simpleYaml(value: unknown, indent = ''): string | undefined {
  if (Array.isArray(value)) return listText(value, indent)
  return isObject(value) ? mapText(value, indent) : scalarText(value)
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return simpleText.test(value) && !reserved.test(value) ? value : undefined
  const isSimple = typeof value === 'boolean' || (Number.isSafeInteger(value) && !Object.is(value, -0))
  return isSimple ? String(value) : undefined
}

function listText(list: readonly unknown[], indent: string): string | undefined {
  let text = ''
  for (const item of list) {
    const inside = Array.isArray(item) ? undefined : simpleYaml(item, `${indent}  `)
    if (inside === undefined) return undefined
    text += text === '' ? `- ${inside}` : `\n${indent}- ${inside}`
  }
  return text === '' ? undefined : text
}

function mapText(map: Readonly<Record<string, unknown>>, indent: string): string | undefined {
  if (sourceTextOf(map) !== undefined) return undefined
  let text = ''
  for (const name of Object.keys(map)) {
    const value = map[name]
    const isInLines = typeof value === 'object'
    const member = isInLines ? simpleYaml(value, `${indent}  `) : scalarText(value)
    if (member === undefined || scalarText(name) === undefined) return undefined
    if (text !== '') text += `\n${indent}`
    text += isInLines ? `${name}:\n${indent}  ${member}` : `${name}: ${member}`
  }
  return text === '' ? undefined : text
}
