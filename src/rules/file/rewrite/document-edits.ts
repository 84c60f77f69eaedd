import { isMap, isScalar, isSeq, type Node, parseDocument, type YAMLSeq } from 'yaml'
import { hasSameSourceText, sourceTextOf } from '../../../core/json/source-text.js'
import { isObject } from '../../../validation/fields.js'
import type { DocumentFormat } from '../../document/document.js'
import { matchItems, matchNames } from './match-items.js'
import { blockYaml, flowYaml, indentedJson, inlineYaml, needsLines } from './render-value.js'
import {
  type AnyMap,
  type AnyPair,
  beginsLine,
  colonEnd,
  columnIndent,
  commentsAbove,
  contentEnd,
  dashOf,
  hasOwnLines,
  jsonUnit,
  lineIndent,
  lineStart,
  nextLine,
  pairEnd,
  type Splice,
  startOf,
} from './text-layout.js'

/** The current and the requested value of a text. */
export interface Rewriting {
  readonly from: unknown
  readonly to: unknown
}

/** Computes the splices that change the value of a text: only the differences, item by item and field by field. */
export function documentEdits(
  text: string,
  format: DocumentFormat,
  { from, to }: Rewriting,
  unit = jsonUnit(text),
): readonly Splice[] {
  const document = parseDocument(text, { schema: 'core', uniqueKeys: false, keepSourceTokens: true, logLevel: 'error' })
  const splices: Splice[] = []
  const isJson = format === 'json'

  const splice = (start: number, end: number, inserted: string): void => {
    splices.push({ start, end, text: inserted })
  }
  const flow = (value: unknown, at: number): string =>
    isJson ? indentedJson(value, lineIndent(text, at), unit) : flowYaml(value)
  const flowPair = (name: string, value: unknown, at: number): string =>
    isJson
      ? `${JSON.stringify(name)}:${unit === undefined ? '' : ' '}${flow(value, at)}`
      : `${flowYaml(name)}: ${flow(value, at)}`
  const blockPair = (name: string, value: unknown, indent: string): string =>
    `${inlineYaml(name)}:${blockMember(value, indent)}`
  const blockMember = (value: unknown, indent: string): string =>
    needsLines(value) ? `\n${indent}  ${blockYaml(value, `${indent}  `)}` : ` ${inlineYaml(value)}`

  /** `present` is the current value of the node. */
  function change(node: Node | null, present: unknown, value: unknown, replace: (value: unknown) => void): void {
    if (node !== null && hasSameSourceText(present, value)) return
    const isWhole = sourceTextOf(present) !== undefined || sourceTextOf(value) !== undefined
    const isChanged =
      !isWhole &&
      ((isMap(node) && isObject(value) && changeMap(node as AnyMap, present as Members, value)) ||
        (isSeq(node) && Array.isArray(value) && changeSeq(node, present as readonly unknown[], value)))
    if (!isChanged) replace(value)
  }

  function changeMap(map: AnyMap, present: Members, value: Members): boolean {
    const names = Object.keys(value)
    const matching = matchNames(map.items.map(nameOf), names)
    if (matching === undefined) return false
    const staying = new Set(matching)
    for (const [place, index] of matching.entries()) {
      const pair = index === undefined ? undefined : (map.items[index] as AnyPair)
      const member = value[names[place] as string]
      if (pair !== undefined)
        change(pair.value, present[nameOf(pair)], member, (next) => replaceMember(map, pair, next))
    }
    removeItems(map.items.length, staying, map.flow === true, {
      start: (index) => startOf((map.items[index] as AnyPair).key),
      end: (index) => pairEnd(map.items[index] as AnyPair, text),
    })
    const last = map.items[matching.findLast((index) => index !== undefined) as number] as AnyPair
    const added = names.filter((_, place) => matching[place] === undefined)
    const first = startOf((map.items[0] as AnyPair).key)
    if (map.flow) for (const name of added) addToFlow(map, pairEnd(last, text), (at) => flowPair(name, value[name], at))
    else {
      const indent = columnIndent(text, first)
      for (const name of added) addLines(pairEnd(last, text), `${indent}${blockPair(name, value[name], indent)}`)
    }
    return true
  }

  function changeSeq(seq: YAMLSeq, present: readonly unknown[], value: readonly unknown[]): boolean {
    const items = seq.items as readonly Node[]
    const matching = matchItems(present, value)
    if (matching === undefined) return false
    const isSameLength = matching.length === items.length && !matching.includes(undefined)
    const firstDash = dashOf(seq, 0) ?? 0
    // The first item of a nested list shares its line with the dash of the outer item.
    if (!isSameLength && !seq.flow && !beginsLine(text, firstDash)) return false
    for (const [place, index] of matching.entries()) {
      const item = index === undefined ? undefined : (items[index] as Node)
      if (item !== undefined)
        change(item, present[index as number], value[place], (next) => replaceItem(seq, item, next))
    }
    removeItems(items.length, new Set(matching), seq.flow === true, {
      start: (index) => (seq.flow ? startOf(items[index] as Node) : (dashOf(seq, index) ?? 0)),
      end: (index) => contentEnd(items[index] as Node, text),
    })
    const last = items[matching.findLast((index) => index !== undefined) as number] as Node
    const indent = columnIndent(text, firstDash)
    for (const [place, index] of matching.entries()) {
      if (index !== undefined) continue
      if (seq.flow) addToFlow(seq, contentEnd(last, text), (at) => flow(value[place], at))
      else addLines(contentEnd(last, text), `${indent}- ${blockYaml(value[place], `${indent}  `)}`)
    }
    return true
  }

  function replaceMember(map: AnyMap, { key, value }: AnyPair, next: unknown): void {
    const colon = colonEnd(key, text)
    const start = value === null ? colon : Math.max(colon, startOf(value))
    const end = pairEnd({ key, value } as AnyPair, text)
    const isOnLine = value !== null && start < end && !text.slice(colon, start).includes('\n')
    if (map.flow) splice(isOnLine ? start : colon, end, `${isOnLine ? '' : ' '}${flow(next, start)}`)
    else if (isOnLine && !needsLines(next)) splice(start, end, inlineYaml(next))
    else splice(colon, end, blockMember(next, columnIndent(text, startOf(key))))
  }

  function replaceItem(seq: YAMLSeq, item: Node, next: unknown): void {
    const start = startOf(item)
    splice(start, contentEnd(item, text), seq.flow ? flow(next, start) : blockYaml(next, columnIndent(text, start)))
  }

  interface Extent {
    start(index: number): number
    end(index: number): number
  }

  function removeItems(count: number, staying: ReadonlySet<number | undefined>, isFlow: boolean, at: Extent): void {
    const firstStaying = Math.min(...[...staying].filter((index) => index !== undefined))
    for (let index = 0; index < count; index++) {
      if (staying.has(index)) continue
      if (hasOwnLines(text, at.start(index), at.end(index)) && !isJson)
        splice(commentsAbove(text, at.start(index)), nextLine(text, at.end(index)), '')
      else if (isFlow && index > firstStaying) splice(at.end(index - 1), at.end(index), '')
      else {
        // Removes up to the next entry that stays: in flow style, or if the first key of an item follows its dash.
        splice(at.start(index), at.start(firstStaying), '')
        index = firstStaying
      }
    }
  }

  /** Adds lines below the line of `offset`. If several additions have the same position, the innermost comes first. */
  function addLines(offset: number, lines: string): void {
    const at = nextLine(text, offset)
    splice(at, at, text[at - 1] === '\n' ? `${lines}\n` : `\n${lines}`)
  }

  function addToFlow(node: AnyMap | YAMLSeq, end: number, render: (at: number) => string): void {
    const [first] = node.items
    const firstStart = startOf((isMap(node) ? (first as AnyPair).key : first) as Node)
    const isInLines = text.slice(startOf(node), firstStart).includes('\n')
    const gap = isInLines ? `\n${lineIndent(text, firstStart)}` : isJson && unit === undefined ? '' : ' '
    splice(end, end, `,${gap}${render(firstStart)}`)
  }

  const root = document.contents as Node
  change(root, from, to, (value) => {
    const rendered = isJson ? indentedJson(value, '', unit) : blockYaml(value, '')
    splice(lineStart(text, startOf(root)), contentEnd(root, text), rendered)
  })
  return splices
}

type Members = Readonly<Record<string, unknown>>

const nameOf = ({ key }: { readonly key: unknown }): string => (isScalar(key) ? String(key.value) : '')
