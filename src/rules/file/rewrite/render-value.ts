/** Values as text that is put into a document: YAML in lines or between brackets, or JSON. */
import { Document, isCollection, isScalar, type ToStringOptions, visit } from 'yaml'
import { onOneLine, withWriting, writtenText } from '../../../core/json/written-json.js'
import { isObject } from '../../../validation/fields.js'

const options: ToStringOptions = { indent: 2, lineWidth: 0, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER }

/** Letters, marks and signs of any script; everything else is safer as an escape between quotes. */
const plainText = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u

/** YAML on one line. */
export const inlineYaml = (value: unknown): string => yamlText(value, true)

/** The same as it may stand between brackets, where more has to be quoted. */
export const flowYaml = (value: unknown): string => yamlText([value], true).slice(1, -1).trim()

/** YAML in lines; those after the first begin with `indent`. */
export const blockYaml = (value: unknown, indent: string): string =>
  yamlText(value, !needsLines(value)).replaceAll('\n', `\n${indent}`)

/** JSON in lines if `unit` says how deep each level is indented, else on one line. */
export const indentedJson = (value: unknown, indent: string, unit: string | undefined): string =>
  withWriting(value, (marked) => JSON.stringify(marked, null, unit).replaceAll('\n', `\n${indent}`))

/** Whether YAML gives it lines of its own. */
export function needsLines(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return isObject(value) && Object.keys(value).length > 0 && writtenText(value) === undefined
}

/** What was written as JSON stands as JSON, which is YAML too. */
const yamlText = (value: unknown, isFlow: boolean): string =>
  withWriting(value, (marked) => plainYaml(marked, isFlow), onOneLine)

function plainYaml(value: unknown, isFlow: boolean): string {
  const document = new Document(value, { schema: 'core', aliasDuplicateObjects: false })
  visit(document, (_key, node) => {
    if (isFlow && isCollection(node)) node.flow = true
    if (isScalar(node) && typeof node.value === 'string' && !plainText.test(node.value)) node.type = 'QUOTE_DOUBLE'
  })
  return document.toString(options).trimEnd()
}
