/**
 * Edits long documents in steps of one rule. The text around the lists of rules is rewritten with only the first rule of each
 * list, because that step parses a whole document. Rules are then kept, rewritten, added and removed one by one.
 */

import { hasSameSourceText } from '../../../core/json/source-text.js'
import { manyPerStep, mapInSteps, type Steps } from '../../../core/scheduling/steps.js'
import type { DocumentFormat } from '../../document/document.js'
import { isSingleSet, ruleSetsIn } from '../../store/document-sets.js'
import { contentStart, inList, rewriteDocument } from './document.js'
import { rewriteList } from './list.js'
import { moved, type RuleOffsets, type RulesText, readRulesText, rulesTextSteps } from './rules-text.js'

type Fields = Readonly<Record<string, unknown>>

const longText = 64 * 1_024
const longList = 200

/** Like `rewriteDocument`, but in steps if the document is long and its rules are on separate lines. */
export function* rewriteSteps(given: RulesText, format: DocumentFormat, to: unknown): Steps<RulesText> {
  const isLong = given.text.length > longText || ruleSetsIn(to).some((set) => rulesOf(set).length > longList)
  return (isLong ? yield* rewriteLarge(given, format, to) : undefined) ?? rewriteDocument(given, format, to)
}

/** Returns `undefined` if the document does not allow it. `together` is the number of rules to rewrite in one step. */
export function* rewriteLarge(
  given: RulesText,
  format: DocumentFormat,
  to: unknown,
  together?: number,
): Steps<RulesText | undefined> {
  if (isSingleSet(given.document) && !isSingleSet(to)) {
    const list = yield* listSteps(given, format)
    return list && (yield* rewriteLarge(list, format, to, together))
  }
  const sets = ruleSetsIn(to)
  let text = hasSameFrame(given.document, to) ? given : rewriteFrame(given, format, to)
  for (const [index, set] of sets.entries()) {
    const before = text && ruleSetsIn(text.document)[index]
    if (text === undefined || before === undefined) return undefined
    if (before.rules === set.rules || (rulesOf(set).length === 0 && hasSameSourceText(before.rules, set.rules)))
      continue
    text = yield* rewriteList(text, format, { set: index, before: rulesOf(before), after: rulesOf(set) }, together)
  }
  return text && { ...text, document: to }
}

const rulesOf = (set: Fields): readonly unknown[] => (Array.isArray(set.rules) ? set.rules : [])

/** Converts a single rule set to a list with that set, which another set can be added to. */
function* listSteps({ text, places, document }: RulesText, format: DocumentFormat): Steps<RulesText | undefined> {
  const mark = text.startsWith('\ufeff') ? '\ufeff' : ''
  const before = rulesOf(document as Fields)
  const reduced = without(text, [cutOf(places[0], before, format)])
  const start = contentStart(reduced.slice(mark.length), format)
  const list = mark + inList(text.slice(mark.length), format, start)
  const read = yield* parseSteps(Buffer.from(list).toString(), format)
  const to = { ruleSets: [document] }
  if (read === undefined || !hasSameFrame(read.document, to)) return undefined
  const after = rulesOf(ruleSetsIn(read.document)[0] as Fields)
  const isSame = yield* mapInSteps(before, (rule, index) => hasSameSourceText(rule, after[index]), manyPerStep)
  return isSame.includes(false) || after.length !== before.length ? undefined : { ...read, document: to }
}

function* parseSteps(text: string, format: DocumentFormat): Steps<RulesText | undefined> {
  try {
    return yield* rulesTextSteps(text, format)
  } catch {
    return undefined
  }
}

/** True if only rules differ, in lists that are non-empty before and after. */
function hasSameFrame(from: unknown, to: unknown): boolean {
  const [before, after] = [ruleSetsIn(from), ruleSetsIn(to)]
  if (Array.isArray(from) !== Array.isArray(to) || isSingleSet(from) !== isSingleSet(to)) return false
  const frame = (set: Fields): Fields => ({ ...set, rules: rulesOf(set).length > 0 })
  return before.length === after.length && hasSameSourceText(before.map(frame), after.map(frame))
}

/** The rules of a list after the first one. */
interface Cut {
  readonly start: number
  readonly end: number
  readonly places: RuleOffsets
  readonly rules: readonly unknown[]
}

function rewriteFrame(given: RulesText, format: DocumentFormat, to: unknown): RulesText | undefined {
  if (isSingleSet(given.document) !== isSingleSet(to)) return undefined
  const from = ruleSetsIn(given.document)
  const cuts = from.map((set, index) => cutOf(given.places[index], rulesOf(set), format))
  const reduced = readRulesText(without(given.text, cuts), format)
  const reducedFrom = from.map((set, index) => (cuts[index] ? { ...set, rules: rulesOf(set).slice(0, 1) } : set))
  const cutOfSet = new Map(from.map(({ id }, index) => [id, cuts[index]]))
  const keptRules = new Map(reducedFrom.map((set) => [set.id, rulesOf(set)]))
  const wanted = ruleSetsIn(to).map((set): Fields => {
    const kept = keptRules.get(set.id) ?? []
    return { ...set, rules: kept.length > 0 && rulesOf(set).length > 0 ? kept : rulesOf(set).slice(0, 1) }
  })
  const rewritten = rewriteDocument(
    { ...reduced, document: withSets(given.document, reducedFrom) },
    format,
    withSets(to, wanted),
  )
  const staying = wanted.map((set) => (rulesOf(set).length > 0 ? cutOfSet.get(set.id) : undefined))
  return withCuts(rewritten, given.text, format, staying)
}

function withSets(document: unknown, sets: readonly Fields[]): unknown {
  if (Array.isArray(document)) return sets
  return isSingleSet(document) ? sets[0] : { ruleSets: sets }
}

function cutOf(places: RuleOffsets | undefined, rules: readonly unknown[], format: DocumentFormat): Cut | undefined {
  const second = places?.starts[1]
  if (places === undefined || second === undefined || places.starts.length !== rules.length) return undefined
  // In JSON, includes the comma before it.
  return { start: format === 'json' ? second - 1 : second, end: places.end, places, rules }
}

function without(text: string, cuts: readonly (Cut | undefined)[]): string {
  let [left, at] = ['', 0]
  for (const cut of cuts) {
    if (cut === undefined) continue
    left += text.slice(at, cut.start)
    at = cut.end
  }
  return left + text.slice(at)
}

/** Inserts the detached rules after the first rule of each list. */
function withCuts(
  { text, places: present, document }: RulesText,
  source: string,
  format: DocumentFormat,
  cuts: readonly (Cut | undefined)[],
): RulesText | undefined {
  const lineBreak = source.includes('\r\n') ? '\r\n' : '\n'
  const sets = [...ruleSetsIn(document)]
  const places: (RuleOffsets | undefined)[] = []
  let [result, at] = ['', 0]
  for (const [index, cut] of cuts.entries()) {
    const found = present[index]
    const first = found?.starts[0]
    if (cut === undefined) {
      places.push(moved(found, result.length - at))
      continue
    }
    if (found === undefined || first === undefined || found.starts.length !== 1) return undefined
    if (format === 'yaml' && found.column !== cut.places.column) return undefined
    const by = result.length - at
    result += text.slice(at, found.end)
    if (format === 'yaml' && !result.endsWith('\n')) result += lineBreak
    const to = result.length - cut.start
    result += source.slice(cut.start, cut.end)
    places.push({
      column: found.column,
      starts: [first + by, ...cut.places.starts.slice(1).map((start) => start + to)],
      end: result.length,
    })
    at = found.end
    if (format === 'yaml' && at < text.length && !result.endsWith('\n')) result += lineBreak
    sets[index] = { ...sets[index], rules: cut.rules }
  }
  return { text: result + text.slice(at), places, document: withSets(document, sets) }
}
