/**
 * Edits some rules of a long text at the cost of a short one: the changed rules and a neighbour are cut out, rewritten as a
 * separate list, and inserted again. The value of this list and the positions of its dashes are verified first. The rest of
 * the text is not parsed again.
 */
import { hasSameSourceText } from '../../../core/json/source-text.js'
import { type DocumentFormat, parseDocumentNodes } from '../../document/document.js'
import { isSingleSet, ruleSetsIn } from '../../store/document-sets.js'
import { documentEdits, type Rewriting } from './document-edits.js'
import { jsonPlacesOf, moved, placesIn, type RuleOffsets, type RulesText } from './rules-text.js'
import { jsonUnit, nextContent, spliced } from './text-layout.js'

/** Returns `undefined` if the edit does not allow it. */
export function rewriteChangedRules(given: RulesText, format: DocumentFormat, to: unknown): RulesText | undefined {
  const set = changedSet(given.document, to)
  const places = given.places[set]
  const [before, after] = [rulesOf(given.document, set), rulesOf(to, set)]
  if (places === undefined || before === undefined || after === undefined) return undefined
  const window = differenceOf(before, after)
  const written = rewriteWindow(given, format, { set, places, window, isAtEnd: window.last === before.length })
  return written && { ...written, document: to }
}

interface WindowChange {
  readonly set: number
  readonly places: RuleOffsets
  readonly window: Window
  /** True if the window includes the last rule of the list. */
  readonly isAtEnd: boolean
}

/** Rewrites the rules of a window. The result still has the document of the old text. */
export function rewriteWindow(given: RulesText, format: DocumentFormat, change: WindowChange): RulesText | undefined {
  return format === 'json' ? inJson(given, change) : inYaml(given, change)
}

/** Replaces the rules from `first` (inclusive) to `last` (exclusive). */
export interface Window extends Rewriting {
  readonly from: readonly unknown[]
  readonly to: readonly unknown[]
  readonly first: number
  readonly last: number
}

function inYaml(
  { text, document, places: all }: RulesText,
  { set, places, isAtEnd, window: { first, last, ...lists } }: WindowChange,
): RulesText | undefined {
  const start = places.starts[first] as number
  // Blank lines and comments below the last rule could become part of a block scalar above them.
  const end = places.starts[last] ?? nextContent(text, places.end)
  const list = text.slice(start, end)
  if (placesOfList(list, lists.from) === undefined) return undefined
  const written = spliced(list, documentEdits(list, 'yaml', lists))
  const inside = written === undefined ? undefined : placesOfList(written, lists.to)
  // The text after the list must still start on its own line.
  const isWhole = written?.endsWith('\n') === list.endsWith('\n')
  if (written === undefined || inside?.column !== places.column || !isWhole) return undefined
  const by = written.length - list.length
  const own: RuleOffsets = {
    ...places,
    starts: [
      ...places.starts.slice(0, first),
      ...inside.starts.map((at) => at + start),
      ...places.starts.slice(last).map((at) => at + by),
    ],
    end: isAtEnd ? inside.end + start : places.end + by,
  }
  return {
    text: text.slice(0, start) + written + text.slice(end),
    document,
    places: all.map((other, index) => (index === set ? own : index < set ? other : moved(other, by))),
  }
}

/** The positions of the items of a list, if it has the expected value. */
export function placesOfList(text: string, items: unknown): RuleOffsets | undefined {
  const saved = Buffer.from(text).toString()
  try {
    const { value, yaml } = parseDocumentNodes(saved, 'yaml')
    return yaml !== undefined && hasSameSourceText(value, items) ? placesIn(text, yaml.contents) : undefined
  } catch {
    return undefined
  }
}

function inJson(
  { text, document, places: all }: RulesText,
  { set, places, window: { first, last, ...lists } }: WindowChange,
): RulesText | undefined {
  const start = places.starts[first] as number
  const next = places.starts[last]
  // Ends before the comma of the next rule.
  const end = next === undefined ? places.end : next - 1
  const list = `[${text.slice(start, end)}]`
  const written = spliced(list, documentEdits(list, 'json', lists, jsonUnit(text)))
  if (written === undefined || !isJsonOf(list, lists.from) || !isJsonOf(written, lists.to)) return undefined
  const after = text.slice(0, start) + written.slice(1, -1) + text.slice(end)
  const inside = jsonPlacesOf(`{"rules":${written}}`)[0]
  // An empty list has no positions.
  if (inside === undefined) return { text: after, document, places: jsonPlacesOf(after) }
  const by = written.length - list.length
  // Both texts start before the list itself.
  const offset = start - '{"rules":['.length
  const own: RuleOffsets = {
    ...places,
    starts: [
      ...places.starts.slice(0, first),
      ...inside.starts.map((at) => at + offset),
      ...places.starts.slice(last).map((at) => at + by),
    ],
    end: next === undefined ? inside.end + offset : places.end + by,
  }
  return {
    text: after,
    document,
    places: all.map((other, index) => (index === set ? own : index < set ? other : moved(other, by))),
  }
}

export function isJsonOf(text: string, items: unknown): boolean {
  try {
    return hasSameSourceText(parseDocumentNodes(Buffer.from(text).toString(), 'json').value, items)
  } catch {
    return false
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Finds the only rule set with different rules. Returns -1 if no set or more than the rules of one set differ. */
function changedSet(from: unknown, to: unknown): number {
  const [before, after] = [ruleSetsIn(from), ruleSetsIn(to)]
  if (Array.isArray(from) !== Array.isArray(to) || isSingleSet(from) !== isSingleSet(to)) return -1
  if (before.length !== after.length) return -1
  const changed = before.flatMap((set, index) => (set === after[index] ? [] : [index]))
  const [index = -1] = changed
  const heads = [before[index], after[index]].map((set) => ({ ...set, rules: null }))
  return changed.length === 1 && hasSameSourceText(heads[0], heads[1]) ? index : -1
}

function rulesOf(document: unknown, set: number): readonly unknown[] | undefined {
  const rules = (ruleSetsIn(document)[set] as Fields | undefined)?.rules
  return Array.isArray(rules) ? rules : undefined
}

/** Unchanged rules are the same objects. The window includes one unchanged neighbour on each side. */
export function differenceOf(before: readonly unknown[], after: readonly unknown[]): Window {
  const least = Math.min(before.length, after.length)
  let first = 0
  while (first < least && before[first] === after[first]) first += 1
  let same = 0
  while (same < least - first && before.at(-1 - same) === after.at(-1 - same)) same += 1
  first = Math.max(0, first - 1)
  same = Math.max(0, same - 1)
  const last = before.length - same
  return { first, last, from: before.slice(first, last), to: after.slice(first, after.length - same) }
}
