/**
 * YAML of values that need no quotes, in lines, as the yaml package writes it. Most rules are such values, and making their text
 * here costs a small part of what the package takes to write it and to verify it by reading it again.
 */
import { writtenText } from '../../../core/json/written-json.js'
import { isObject } from '../../../validation/fields.js'

/** Text that no rule of YAML takes for anything else; words and durations, but no numbers. */
const simpleText = /^(?:[A-Za-z/][A-Za-z0-9/_.*{}-]*|[1-9][0-9]*(?:ms|s|m|h|d))$/
const reserved = /^(?:null|true|false)$/i

/** The lines of a value, those after the first with `indent` before them; undefined if it is not that simple. */
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
  if (writtenText(map) !== undefined) return undefined
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
