import type { FluxGateError } from '../../core/errors.js'
import { compactJson, type JsonPath } from '../../core/json/json-ranges.js'
import { finish, type Steps } from '../../core/scheduling/steps.js'
import { positionText, rulesInvalid } from '../../validation/issues.js'
import { parseJsonSteps, type TextIssue } from './json-text.js'
import { lineStartSteps, positionOf } from './text-position.js'
import { type ParsedYaml, parseYamlSteps } from './yaml-text.js'

export type DocumentFormat = 'yaml' | 'json'

/** In characters. YAML takes far longer to parse than JSON, and a reload must not delay requests. */
export const maxDocumentLength: Readonly<Record<DocumentFormat, number>> = { yaml: 4 * 2 ** 20, json: 32 * 2 ** 20 }

/** Further syntax errors are usually caused by the first ones. */
const maxSyntaxErrors = 20

export interface DocumentOptions {
  /** The name of the document in messages. */
  readonly source?: string | undefined
  /** JSON only: see `JsonOptions`. */
  readonly onPlace?: ((path: JsonPath, start: number, end: number) => void) | undefined
}

export interface ParsedDocument {
  readonly value: unknown
  /** The parsed nodes, if the document is YAML. */
  readonly yaml?: ParsedYaml
}

export const formatOf = (path: string): DocumentFormat => (path.toLowerCase().endsWith('.json') ? 'json' : 'yaml')

/** Parses the text of a document. Throws `FLUXGATE_RULES_INVALID` with the line and column of each syntax error. */
export const parseDocument = (text: string, format: DocumentFormat, source?: string): unknown =>
  parseDocumentNodes(text, format, source).value

export const parseDocumentNodes = (text: string, format: DocumentFormat, source?: string): ParsedDocument =>
  finish(parseDocumentSteps(text, format, { source }))

export function* parseDocumentSteps(
  text: string,
  format: DocumentFormat,
  { source = 'The rules', onPlace }: DocumentOptions = {},
): Steps<ParsedDocument> {
  const max = maxDocumentLength[format]
  if (text.length > max) {
    const advice = format === 'yaml' ? `. Use JSON, which may have ${maxDocumentLength.json}` : ''
    const message = `must have at most ${max} characters of ${format.toUpperCase()}; received ${text.length}${advice}`
    throw syntaxError(source, text, [{ offset: 0, message }])
  }
  const mark = text.startsWith('\ufeff') ? 1 : 0
  const body = text.slice(mark)
  if (format === 'json') {
    const onBodyPlace =
      onPlace && ((path: JsonPath, start: number, end: number) => onPlace(path, start + mark, end + mark))
    // The layout of a file is not part of its rules.
    const read = yield* parseJsonSteps(body, { layout: compactJson, onPlace: onBodyPlace })
    if (read.issue !== undefined) throw syntaxError(source, body, [read.issue])
    return { value: read.value }
  }
  const yaml = yield* parseYamlSteps(body)
  if (yaml.issues.length > 0) throw syntaxError(source, body, yaml.issues)
  return { value: yaml.value, yaml }
}

function syntaxError(source: string, text: string, issues: readonly TextIssue[]): FluxGateError {
  const starts = finish(lineStartSteps(text))
  const kept = issues.slice(0, maxSyntaxErrors).map(({ offset, message }) => {
    const { line, column } = positionOf(offset, starts)
    return { path: positionText(line, column), message, line, column }
  })
  return rulesInvalid(source, { kept, count: kept.length })
}
