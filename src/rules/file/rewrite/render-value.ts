/** Renders values for insertion into a document: as block YAML, flow YAML or JSON. */
import { Document, isCollection, isScalar, type ToStringOptions, visit } from 'yaml'
import { onOneLine, sourceTextOf, withSourceTexts } from '../../../core/json/source-text.js'
import { isObject } from '../../../validation/fields.js'

const options: ToStringOptions = { indent: 2, lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER }

/** Letters, marks, numbers, punctuation and symbols of any script. Other characters are quoted and escaped. */
const plainText = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u

/** YAML on one line. */
export const inlineYaml = (value: unknown): string => yamlText(value, true)

/** YAML for a flow collection, where more characters must be quoted. */
export const flowYaml = (value: unknown): string => yamlText([value], true).slice(1, -1).trim()

/** Block YAML; lines after the first start with `indent`. */
export const blockYaml = (value: unknown, indent: string): string =>
  yamlText(value, !needsLines(value)).replaceAll('\n', `\n${indent}`)

/** JSON with one indentation `unit` per level, or on one line if `unit` is undefined. */
export const indentedJson = (value: unknown, indent: string, unit: string | undefined): string =>
  withSourceTexts(value, (marked) => JSON.stringify(marked, null, unit).replaceAll('\n', `\n${indent}`))

/** True if block YAML renders the value on lines of its own. */
export function needsLines(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return isObject(value) && Object.keys(value).length > 0 && sourceTextOf(value) === undefined
}

/** Values with JSON source text are written as that text, which is valid YAML. */
const yamlText = (value: unknown, isFlow: boolean): string =>
  withSourceTexts(value, (marked) => plainYaml(marked, isFlow), onOneLine)

function plainYaml(value: unknown, isFlow: boolean): string {
  const document = new Document(value, { schema: 'core', aliasDuplicateObjects: false })
  visit(document, (_key, node) => {
    if (isFlow && isCollection(node)) node.flow = true
    if (isScalar(node) && typeof node.value === 'string' && !plainText.test(node.value)) node.type = 'QUOTE_DOUBLE'
  })
  return document.toString(options).trimEnd()
}
