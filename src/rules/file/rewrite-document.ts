/**
 * A document as its author wrote it, with as little changed as an edit needs: comments, order, quotes and blank lines of
 * everything else stay to the byte. What is to be written is read first and compared with what it should say, so that no
 * layout, however odd, turns an edit into a wrong one.
 */
import { type Node, parseDocument as parseYaml, visit } from 'yaml'
import { FluxGateError } from '../../core/errors.js'
import { isWrittenAlike, jsonText } from '../../core/written-json.js'
import { type DocumentFormat, maxDocumentLength, parseDocument } from '../document.js'
import { isLoneSet } from '../store/document-sets.js'
import { documentEdits, type Rewriting } from './document-edits.js'
import { blockYaml, flowYaml } from './render-value.js'
import { jsonUnit, type Splice, spliced, startOf } from './text-layout.js'

export function rewriteDocument(text: string, format: DocumentFormat, { from, to }: Rewriting): string {
  const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
  const given = text.slice(mark.length)
  const body = isLoneSet(from) && !isLoneSet(to) ? inList(given, format) : given
  const ways = body.length > maxDocumentLength.yaml ? [anew] : [inPlace, withoutAliases, anew]
  for (const way of ways) {
    const written = way(body, format, { from: isLoneSet(from) && !isLoneSet(to) ? { ruleSets: [from] } : from, to })
    if (written !== undefined && says(written, format, to)) return mark + written
  }
  throw new FluxGateError('FLUXGATE_RULES_INVALID', `This cannot be written as ${format.toUpperCase()}.`)
}

type Way = (text: string, format: DocumentFormat, rewriting: Rewriting) => string | undefined

const inPlace: Way = (text, format, rewriting) => spliced(text, documentEdits(text, format, rewriting))

/** An edit of what others refer to must not change it for them: each gets a copy before. */
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

const anew: Way = (text, format, { to }) => {
  if (format === 'yaml') return `${blockYaml(to, '')}\n`
  const unit = jsonUnit(text)
  return jsonText(to, unit) + (text.endsWith('\n') ? '\n' : '')
}

/** What says one set, as the first of a list of them. */
function inList(text: string, format: DocumentFormat): string {
  const deeper = (indent: string, part: string): string => part.replace(/\n(?=[^\r\n])/g, `\n${indent}`)
  if (format === 'yaml') {
    const start = startOf(parseYaml(text, { logLevel: 'error' }).contents as Node)
    return `${text.slice(0, start)}ruleSets:\n  - ${deeper('    ', text.slice(start))}`
  }
  const unit = jsonUnit(text)
  if (unit === undefined) return `{"ruleSets":[${text.trim()}]}`
  return `{\n${unit}"ruleSets": [\n${unit}${unit}${deeper(unit + unit, text.trim())}\n${unit}]\n}\n`
}

/** Also after it was encoded: not every text that a program may hold can be saved. */
function says(text: string, format: DocumentFormat, wanted: unknown): boolean {
  try {
    const saved = Buffer.from(text).toString()
    return isWrittenAlike(parseDocument(saved, format), wanted)
  } catch {
    return false
  }
}
