import type { FluxGateError } from '../core/errors.js'
import { compactJson } from '../core/json-places.js'
import { parseJson } from '../core/written-json.js'
import { jsonMistake, type TextMistake } from './json-text.js'
import { noMistakes, rulesInvalid } from './mistakes.js'
import { type ReadYaml, readYaml } from './yaml-text.js'

export type DocumentFormat = 'yaml' | 'json'

/** In characters. YAML takes far longer to read than JSON, and a process that reloads still has requests to answer. */
export const maxDocumentLength: Readonly<Record<DocumentFormat, number>> = { yaml: 4 * 2 ** 20, json: 16 * 2 ** 20 }

/** After the first few, syntax mistakes are echoes of earlier ones. */
const maxSyntaxMistakes = 20

export const formatOf = (path: string): DocumentFormat => (path.toLowerCase().endsWith('.json') ? 'json' : 'yaml')

/** Text → document, or a FluxGateError with the line and column of each mistake. */
export const parseDocument = (text: string, format: DocumentFormat, source?: string): unknown =>
  readDocument(text, format, source).value

/** The same with what else is known of it if it is YAML. */
export function readDocument(
  text: string,
  format: DocumentFormat,
  source = 'The rules',
): { readonly value: unknown; readonly yaml?: ReadYaml } {
  const max = maxDocumentLength[format]
  if (text.length > max) {
    const advice = format === 'yaml' ? `; JSON may have ${maxDocumentLength.json}` : ''
    const message = `found ${text.length} characters of ${format.toUpperCase()}; allowed: ${max}${advice}`
    throw syntaxError(source, text, [{ offset: 0, message }])
  }
  const body = text.startsWith('\ufeff') ? text.slice(1) : text
  if (format === 'json') return { value: fromJson(body, source) }
  const yaml = fromYaml(body, source)
  return { value: yaml.value, yaml }
}

function fromJson(text: string, source: string): unknown {
  const mistake = jsonMistake(text)
  if (mistake !== undefined) throw syntaxError(source, text, [mistake])
  // How a file is laid out is nothing that its rules say.
  return parseJson(text, compactJson)
}

function fromYaml(text: string, source: string): ReadYaml {
  const yaml = readYaml(text)
  if (yaml.mistakes.length > 0) throw syntaxError(source, text, yaml.mistakes)
  return yaml
}

function syntaxError(source: string, text: string, mistakes: readonly TextMistake[]): FluxGateError {
  const located = noMistakes()
  for (const { offset, message } of mistakes.slice(0, maxSyntaxMistakes)) {
    located.add(placeIn(text, offset), message)
  }
  return rulesInvalid(source, located)
}

function placeIn(text: string, offset: number): string {
  const lines = text.slice(0, offset).split(/\r\n|\r|\n/)
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}
