import { isMap, isSeq, type Node } from 'yaml'
import { findJsonRanges, type JsonPath } from '../../../core/json/json-ranges.js'
import { finish, mapInSteps, type Steps } from '../../../core/scheduling/steps.js'
import { type DocumentFormat, parseDocumentSteps } from '../../document/document.js'
import type { ParsedYaml } from '../../document/yaml-text.js'
import { type AnyMap, commentsAbove, contentEnd, lineStart, nextLine, startOf } from './text-layout.js'

/** A text with its value and the positions of its rules, so that an edit does not have to parse all of it again. */
export interface RulesText {
  readonly text: string
  readonly document: unknown
  /** For each rule set; `undefined` if its rules are not on separate lines. */
  readonly places: readonly (RuleOffsets | undefined)[]
}

/** The positions of the rules of a set. */
export interface RuleOffsets {
  /** Start of each rule. YAML: the line of its dash, or of the comments directly above it. JSON: after the comma. */
  readonly starts: readonly number[]
  /** End of the last rule. YAML: including the line break. */
  readonly end: number
  /** The column of each dash. */
  readonly column: number
}

export const readRulesText = (text: string, format: DocumentFormat, source?: string): RulesText =>
  finish(rulesTextSteps(text, format, source))

export function* rulesTextSteps(text: string, format: DocumentFormat, source?: string): Steps<RulesText> {
  const inJson = jsonRules(text)
  const { value, yaml } = yield* parseDocumentSteps(text, format, { source, onPlace: inJson.onPlace })
  if (yaml === undefined) return { text, document: value, places: inJson.places }
  // The parser does not count the byte order mark.
  const offset = text.startsWith('\ufeff') ? 1 : 0
  const body = text.slice(offset)
  const places: (RuleOffsets | undefined)[] = []
  for (const set of setNodes(yaml)) places.push(moved(yield* placesSteps(body, rulesOf(set)), offset))
  return { text, document: value, places }
}

export const moved = (places: RuleOffsets | undefined, by: number): RuleOffsets | undefined =>
  places && { ...places, starts: places.starts.map((start) => start + by), end: places.end + by }

/** Empty if the document has anchors, because aliases may share nodes. */
function setNodes({ contents, hasAnchors }: ParsedYaml): readonly unknown[] {
  if (hasAnchors) return []
  const list = isMap(contents) && contents.has('ruleSets') ? contents.get('ruleSets') : contents
  return isSeq(list) ? list.items : [list]
}

const rulesOf = (set: unknown): unknown => (isMap(set) ? (set as AnyMap).get('rules', true) : undefined)

/** The positions of the items of a block list. Each item must start a line. */
export const placesIn = (text: string, list: unknown): RuleOffsets | undefined => finish(placesSteps(text, list))

function* placesSteps(text: string, list: unknown): Steps<RuleOffsets | undefined> {
  if (!isSeq(list) || list.flow || list.items.length === 0) return undefined
  const items = list.items as readonly Node[]
  const dashes = yield* mapInSteps(items, (item) => dashBefore(text, startOf(item)))
  const [column = 0, ...others] = new Set(yield* mapInSteps(dashes, (dash) => dash - lineStart(text, dash)))
  if (dashes.includes(-1) || others.length > 0) return undefined
  return {
    starts: yield* mapInSteps(dashes, (dash) => commentsAbove(text, dash)),
    end: nextLine(text, contentEnd(items.at(-1) as Node, text)),
    column,
  }
}

/** Returns -1 if there is other text before the dash on its line, or between the dash and the item. */
function dashBefore(text: string, start: number): number {
  const line = lineStart(text, start)
  return /^ *- +$/.test(text.slice(line, start)) ? text.indexOf('-', line) : -1
}

/** Collects the positions of the rules while a JSON text is parsed. */
function jsonRules(text: string) {
  const places: { starts: number[]; end: number; column: number }[] = []
  const onPlace = (path: JsonPath, start: number, end: number): void => {
    if (!isRule(path)) return
    const set = Number(path.at(-3) ?? 0)
    const ofSet = places[set] ?? { starts: [], end: 0, column: 0 }
    ofSet.starts.push(withSpaceBefore(text, start))
    ofSet.end = end
    places[set] = ofSet
  }
  return { places, onPlace }
}

export function jsonPlacesOf(text: string): readonly (RuleOffsets | undefined)[] {
  const { places, onPlace } = jsonRules(text)
  for (const { path, start, end } of findJsonRanges(text, (_, path) => isRule(path))) onPlace(path, start, end)
  return places
}

function withSpaceBefore(text: string, start: number): number {
  let first = start
  while (text.charCodeAt(first - 1) <= 0x20) first -= 1
  return first
}

/** `rules[0]`, `[0].rules[0]` or `ruleSets[0].rules[0]`. */
const isRule = (path: JsonPath): boolean =>
  typeof path.at(-1) === 'number' && path.at(-2) === 'rules' && path.length <= 4
