/** Positions and indentation in the text of a YAML or JSON document. */
import { isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from 'yaml'

export type AnyPair = Pair<Node, Node | null>
export type AnyMap = YAMLMap<Node, Node | null>

export const startOf = (node: Node): number => node.range?.[0] ?? 0

/** The end of the content of a node, without trailing comments and line breaks. */
export function contentEnd(node: Node, text: string): number {
  if ((isMap(node) || isSeq(node)) && !node.flow) {
    const last = node.items.at(-1)
    if (last !== undefined) return isMap(node) ? pairEnd(last as AnyPair, text) : contentEnd(last as Node, text)
  }
  const [start = 0, end = 0] = node.range ?? []
  if (!isScalar(node) || (node.type !== 'BLOCK_LITERAL' && node.type !== 'BLOCK_FOLDED')) return end
  // A block scalar includes its last line break and, with a + indicator, the blank lines below it.
  const written = text.slice(start, end)
  return start + (/^[|>]\d?\+/.test(written) ? written.replace(/\r?\n$/, '') : written.trimEnd()).length
}

export function pairEnd({ key, value }: AnyPair, text: string): number {
  const colon = colonEnd(key, text)
  return value === null ? colon : Math.max(colon, contentEnd(value, text))
}

/** The offset after the colon of a key. */
export function colonEnd(key: Node, text: string): number {
  const end = key.range?.[1] ?? 0
  return text.indexOf(':', end) < 0 ? end : text.indexOf(':', end) + 1
}

export const lineStart = (text: string, offset: number): number =>
  offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1

/** The start of the next line, or the end of the text. */
export function nextLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset)
  return end < 0 ? text.length : end + 1
}

/** The start of the next line, from `line` on, with more than white space and comments; or the end of the text. */
export function nextContent(text: string, line: number): number {
  let next = line
  while (next < text.length && /^\s*(#|$)/.test(text.slice(next, nextLine(text, next)))) next = nextLine(text, next)
  return next
}

/** Spaces up to the column of `offset`. */
export const columnIndent = (text: string, offset: number): string => ' '.repeat(offset - lineStart(text, offset))

/** The leading white space of the line of `offset`. */
export const lineIndent = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? ''

export const beginsLine = (text: string, offset: number): boolean =>
  text.slice(lineStart(text, offset), offset).trim() === ''

/** True if the lines from `start` to `end` contain nothing else, except a comma and a comment after the item. */
export const hasOwnLines = (text: string, start: number, end: number): boolean =>
  beginsLine(text, start) && /^[ \t]*(?:,[ \t]*)?(#.*)?$/.test(text.slice(end, nextLine(text, end)).trimEnd())

/** The start of the comments directly above a line with the same indentation, which belong to it. */
export function commentsAbove(text: string, offset: number): number {
  const indent = columnIndent(text, offset)
  let start = lineStart(text, offset)
  while (start > 0) {
    const above = lineStart(text, start - 1)
    if (!text.startsWith(`${indent}#`, above)) break
    start = above
  }
  return start
}

/** The dash of an item of a block sequence. */
export function dashOf(seq: YAMLSeq, index: number): number | undefined {
  const token = seq.srcToken
  if (token?.type !== 'block-seq') return undefined
  return token.items[index]?.start.find(({ type }) => type === 'seq-item-ind')?.offset
}

/** The indentation unit of a JSON text; `undefined` if it is on one line. */
export const jsonUnit = (text: string): string | undefined => /\n([ \t]+)["[{]/.exec(text)?.[1]

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Applies the splices to a text. Returns `undefined` if two of them overlap. */
export function spliced(text: string, splices: readonly Splice[]): string | undefined {
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n'
  let result = ''
  let done = 0
  for (const { start, end, text: inserted } of splices.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    if (start < done) return undefined
    result += text.slice(done, start) + inserted.replaceAll('\n', lineBreak)
    done = end
  }
  return result + text.slice(done)
}
