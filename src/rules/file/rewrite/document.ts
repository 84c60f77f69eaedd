/**
 * Applies edits to the text of a document with minimal changes: comments, order, quotes and blank lines of all other parts stay
 * byte for byte. The new text is parsed and compared with the requested value before it is used, so that an unusual layout
 * can never cause a wrong edit.
 */
import { type Node, parseDocument as parseYaml, visit } from 'yaml'
import { FluxGateError } from '../../../core/errors.js'
import { hasSameSourceText, jsonText } from '../../../core/json/source-text.js'
import { type DocumentFormat, maxDocumentLength } from '../../document/document.js'
import { isSingleSet } from '../../store/document-sets.js'
import { documentEdits, type Rewriting } from './document-edits.js'
import { blockYaml, flowYaml } from './render-value.js'
import { type RulesText, readRulesText } from './rules-text.js'
import { jsonUnit, type Splice, spliced, startOf } from './text-layout.js'
import { rewriteChangedRules } from './window.js'

export function rewriteDocument(given: RulesText, format: DocumentFormat, to: unknown): RulesText {
  const { text, document: from } = given
  const quickly = rewriteChangedRules(given, format, to)
  if (quickly !== undefined) return quickly
  const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
  const isMoved = isSingleSet(from) && !isSingleSet(to)
  const body = isMoved ? inList(text.slice(mark.length), format) : text.slice(mark.length)
  const rewriting = { from: isMoved ? { ruleSets: [from] } : from, to }
  const ways = body.length > maxDocumentLength.yaml ? [regenerate] : [inPlace, withoutAliases, regenerate]
  for (const way of ways) {
    const written = way(body, format, rewriting)
    const read = written === undefined ? undefined : parseIfEqual(to, mark + written, format)
    if (read !== undefined) return { ...read, document: to }
  }
  throw new FluxGateError('FLUXGATE_RULES_INVALID', `The rules cannot be represented in ${format.toUpperCase()}.`)
}

type Way = (text: string, format: DocumentFormat, rewriting: Rewriting) => string | undefined

const inPlace: Way = (text, format, rewriting) => spliced(text, documentEdits(text, format, rewriting))

/** Replaces aliases by copies first, so that an edit of an anchor does not change its aliases. */
const withoutAliases: Way = (text, format, rewriting) => {
  if (format === 'json') return undefined
  const document = parseYaml(text, { schema: 'core', uniqueKeys: false, logLevel: 'error' })
  const splices: Splice[] = []
  visit(document, {
    Alias(_key, alias) {
      const value: unknown = (alias as Node).toJS(document, { maxAliasCount: -1 })
      splices.push({ start: startOf(alias), end: alias.range?.[1] ?? 0, text: flowYaml(value) })
    },
  })
  const copied = splices.length === 0 ? undefined : spliced(text, splices)
  return copied && inPlace(copied, format, rewriting)
}

const regenerate: Way = (text, format, { to }) => {
  if (format === 'yaml') return `${blockYaml(to, '')}\n`
  const unit = jsonUnit(text)
  return jsonText(to, unit) + (text.endsWith('\n') ? '\n' : '')
}

/** Converts the text of a single rule set to a list with that set. `start` is the position of its first key. */
export function inList(text: string, format: DocumentFormat, start = contentStart(text, format)): string {
  const deeper = (indent: string, part: string): string => part.replace(/\n(?=[^\r\n])/g, `\n${indent}`)
  if (format === 'yaml') {
    return `${text.slice(0, start)}ruleSets:\n  - ${deeper('    ', text.slice(start))}`
  }
  const unit = jsonUnit(text)
  if (unit === undefined) return `{"ruleSets":[${text.trim()}]}`
  return `{\n${unit}"ruleSets": [\n${unit}${unit}${deeper(unit + unit, text.trim())}\n${unit}]\n}\n`
}

/** The position of the first key below the comments at the top. */
export const contentStart = (text: string, format: DocumentFormat): number =>
  format === 'yaml' ? startOf(parseYaml(text, { logLevel: 'error' }).contents as Node) : 0

/** Compares after UTF-8 encoding, because unpaired surrogates cannot be saved. */
function parseIfEqual(wanted: unknown, text: string, format: DocumentFormat): RulesText | undefined {
  try {
    const read = readRulesText(Buffer.from(text).toString(), format)
    return hasSameSourceText(read.document, wanted) ? read : undefined
  } catch {
    return undefined
  }
}
