/** Rewrites a long list of rules one by one. Unchanged rules keep their text and the comments above them. */

import { hasSourceText } from '../../../core/json/source-text.js'
import { eachInSteps, manyPerStep, mapInSteps, type Steps } from '../../../core/scheduling/steps.js'
import { isObject } from '../../../validation/fields.js'
import type { DocumentFormat } from '../../document/document.js'
import { documentEdits } from './document-edits.js'
import { blockYaml, indentedJson } from './render-value.js'
import { moved, type RuleOffsets, type RulesText } from './rules-text.js'
import { simpleYaml } from './simple-yaml.js'
import { jsonUnit, lineIndent, spliced } from './text-layout.js'
import { differenceOf, isJsonOf, placesOfList, rewriteWindow } from './window.js'

export interface ListChange {
  /** Index of the rule set in the document. */
  readonly set: number
  readonly before: readonly unknown[]
  readonly after: readonly unknown[]
}

/** Up to this many rules are rewritten together, which also keeps the lines between them. */
const shortWindow = 32

/** Returns `undefined` if the text does not allow it. The result still has the document of the old text. */
export function* rewriteList(
  given: RulesText,
  format: DocumentFormat,
  change: ListChange,
  together = shortWindow,
): Steps<RulesText | undefined> {
  const { set, before, after } = change
  const places = given.places[set]
  if (places === undefined || places.starts.length !== before.length || after.length === 0) return undefined
  const window = differenceOf(before, after)
  if (window.from.length <= together && window.to.length <= together) {
    const quickly = rewriteWindow(given, format, { set, places, window, isAtEnd: window.last === before.length })
    if (quickly !== undefined) return quickly
  }
  const items =
    format === 'json' ? yield* jsonItems(given.text, places, change) : yield* yamlItems(given.text, places, change)
  return items && (yield* joined(given, format, set, places, items))
}

function* joined(
  { text, places: all, document }: RulesText,
  format: DocumentFormat,
  set: number,
  places: RuleOffsets,
  items: readonly string[],
): Steps<RulesText> {
  const start = places.starts[0] as number
  const separator = format === 'json' ? ',' : ''
  const starts: number[] = []
  let at = start
  yield* eachInSteps(
    items,
    (item) => {
      starts.push(at)
      at += item.length + separator.length
    },
    manyPerStep,
  )
  const end = at - separator.length
  const own: RuleOffsets = { column: places.column, starts, end }
  const by = end - places.end
  return {
    text: text.slice(0, start) + items.join(separator) + text.slice(places.end),
    document,
    places: all.map((other, index) => (index === set ? own : index < set ? other : moved(other, by))),
  }
}

/** For each requested rule, its text if it is unchanged, or the rule that it replaces. */
function* origins({
  before,
  after,
}: ListChange): Steps<readonly { readonly rule: unknown; readonly index?: number }[]> {
  const places = new Map<unknown, number>()
  yield* eachInSteps(
    before,
    (rule, index) => {
      places.set(rule, index)
      if (isObject(rule)) places.set(rule.id, index)
    },
    manyPerStep,
  )
  const originOf = (rule: unknown) => {
    const index = places.get(rule) ?? places.get((rule as { id?: unknown }).id)
    return index === undefined ? { rule } : { rule, index }
  }
  return yield* mapInSteps(after, originOf, manyPerStep)
}

function* jsonItems(text: string, { starts, end }: RuleOffsets, change: ListChange): Steps<string[] | undefined> {
  const unit = jsonUnit(text)
  const textOf = (index: number): string => text.slice(starts[index], (starts[index + 1] ?? end + 1) - 1)
  const [space = ''] = /^\s*/.exec(textOf(0)) ?? []
  const indent = lineIndent(text, (starts[0] as number) + space.length)
  const items: string[] = []
  for (const { rule, index } of yield* origins(change)) {
    yield
    if (index !== undefined && change.before[index] === rule) {
      items.push(textOf(index))
      continue
    }
    const rendered = space + indentedJson(rule, indent, unit)
    // Output of JSON.stringify always parses back to the rule. Source text of a client may not, so it is verified.
    if (hasSourceText(rule) && !isJsonOf(`[${rendered}]`, [rule])) return undefined
    items.push(rendered)
  }
  return items
}

function* yamlItems(text: string, places: RuleOffsets, change: ListChange): Steps<string[] | undefined> {
  const { starts, end, column } = places
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n'
  const indent = ' '.repeat(column)
  const inLines = (item: string): string => (item.endsWith('\n') ? item : item + lineBreak)
  const textOf = (index: number): string => text.slice(starts[index], starts[index + 1] ?? end)
  const isItem = (item: string, rule: unknown): boolean => placesOfList(item, [rule])?.column === column
  const inItem = (lines: string): string => `${indent}- ${lines}\n`.replaceAll('\n', lineBreak)
  const simpleItem = (rule: unknown): string | undefined => {
    const lines = simpleYaml(rule, `${indent}  `)
    return lines && inItem(lines)
  }
  const items: string[] = []
  for (const { rule, index } of yield* origins(change)) {
    yield
    if (index !== undefined && change.before[index] === rule) {
      items.push(inLines(textOf(index)))
      continue
    }
    const present = index === undefined ? undefined : inLines(textOf(index))
    const simple = simpleItem(rule)
    // Text in the generated layout has no manual formatting to preserve, and needs no verification.
    const isOwn = present === undefined || present === simpleItem(change.before[index as number])
    if (simple !== undefined && isOwn) {
      items.push(simple)
      continue
    }
    const edited = present && edits(present, change.before[index as number], rule)
    if (edited?.endsWith('\n') && isItem(edited, rule)) {
      items.push(edited)
      continue
    }
    const rendered = inItem(blockYaml(rule, `${indent}  `))
    if (!isItem(rendered, rule)) return undefined
    items.push(rendered)
  }
  return items
}

/** Applies the differences to the text of one item. */
function edits(text: string, from: unknown, to: unknown): string | undefined {
  if (placesOfList(text, [from]) === undefined) return undefined
  return spliced(text, documentEdits(text, 'yaml', { from: [from], to: [to] }))
}
