import { isEscapeAt } from './normalise-path.js'

/** A glob within a segment: `?` matches one character, `*` any number. Matched without regular expressions. */
export interface SegmentGlob {
  readonly prefix: string
  /** The text from the first wildcard to the last. */
  readonly middle: string
  readonly suffix: string
}

export function compileGlob(text: string): SegmentGlob {
  const first = text.search(/[*?]/)
  if (first === -1) return { prefix: text, middle: '', suffix: '' }
  const last = Math.max(text.lastIndexOf('*'), text.lastIndexOf('?'))
  return { prefix: text.slice(0, first), middle: text.slice(first, last + 1), suffix: text.slice(last + 1) }
}

/** True if a segment matches. Takes time linear in its length for each 32 characters of the glob. */
export function matchesGlob({ prefix, middle, suffix }: SegmentGlob, text: string): boolean {
  const end = text.length - suffix.length
  if (end < prefix.length || !text.startsWith(prefix) || !text.endsWith(suffix)) return false
  if (suffix !== '' && isInsideEscape(text, end)) return false
  if (middle === '*') return true
  if (middle === '?*') return end > prefix.length
  const rest = text.slice(prefix.length, end)
  return matchGreedily(middle, rest, 4 * (middle.length + rest.length)) ?? matchInParallel(middle, rest)
}

/**
 * Backtracks to the latest `*` only. This is fastest for nearly all texts, but takes text × glob steps in the worst
 * case. Returns undefined if `maxSteps` is not enough.
 */
export function matchGreedily(glob: string, text: string, maxSteps: number): boolean | undefined {
  let index = 0
  let star = -1
  let resume = 0
  let steps = 0
  for (let at = 0; at < text.length; ) {
    if (++steps > maxSteps) return undefined
    const expected = glob.charCodeAt(index)
    if (expected === asterisk) {
      star = index++
      resume = at
    } else if (expected === question) {
      at = characterEnd(text, at)
      index++
    } else if (expected === text.charCodeAt(at)) {
      at++
      index++
    } else if (star >= 0) {
      index = star + 1
      resume = characterEnd(text, resume)
      at = resume
    } else return false
  }
  while (glob.charCodeAt(index) === asterisk) index++
  return index === glob.length
}

/**
 * Tracks all partial matches at once in a bit set: bit n is set if the text so far can match n characters of the glob. Each
 * character of the text advances 32 bits per operation.
 */
export function matchInParallel(glob: string, text: string): boolean {
  const tokens = charactersOf(glob)
  const { length } = tokens.filter((token) => token !== '*')
  const words = (length >> 5) + 1
  const stays = new Int32Array(words)
  const any = new Int32Array(words)
  const literals = new Map<string, Int32Array>()
  let bit = 0
  for (const token of tokens) {
    if (token === '*') setBit(stays, bit)
    else if (token === '?') setBit(any, bit++)
    else setBit(literals.get(token) ?? setNew(literals, token, words), bit++)
  }
  const states = new Int32Array(words)
  setBit(states, 0)
  for (let at = 0; at < text.length; ) {
    const end = characterEnd(text, at)
    const literal = literals.get(text.slice(at, end))
    at = end
    let carry = 0
    for (let i = 0; i < words; i++) {
      const state = states[i] as number
      const moves = state & ((any[i] as number) | (literal === undefined ? 0 : (literal[i] as number)))
      states[i] = (moves << 1) | carry | (state & (stays[i] as number))
      carry = moves >>> 31
    }
  }
  return ((states[length >> 5] as number) & (1 << (length & 31))) !== 0
}

function setNew(literals: Map<string, Int32Array>, token: string, words: number): Int32Array {
  const bits = new Int32Array(words)
  literals.set(token, bits)
  return bits
}

function setBit(bits: Int32Array, index: number): void {
  bits[index >> 5] = (bits[index >> 5] as number) | (1 << (index & 31))
}

function charactersOf(text: string): string[] {
  const characters: string[] = []
  for (let at = 0; at < text.length; ) {
    const end = characterEnd(text, at)
    characters.push(text.slice(at, end))
    at = end
  }
  return characters
}

const asterisk = 0x2a
const question = 0x3f

/** True if the index is inside a percent escape. */
const isInsideEscape = (text: string, index: number): boolean =>
  isEscapeAt(text, index - 1) || isEscapeAt(text, index - 2)

/** An escape such as `%20`, or the escapes of one multi-byte UTF-8 character, count as one character. */
function characterEnd(text: string, start: number): number {
  if (!isEscapeAt(text, start)) return start + 1
  let end = start + 3
  for (let more = continuations(text.charCodeAt(start + 1)); more > 0 && isContinuationAt(text, end); more--) end += 3
  return end
}

/** The number of UTF-8 continuation bytes after a byte with this first hex digit: one for C and D, two for E, three for F. */
function continuations(digit: number): number {
  if (digit < 0x43) return 0
  return digit <= 0x44 ? 1 : digit - 0x43
}

/** The bytes 80 to BF are continuation bytes. */
function isContinuationAt(text: string, start: number): boolean {
  if (!isEscapeAt(text, start)) return false
  const digit = text.charCodeAt(start + 1)
  return digit === 0x38 || digit === 0x39 || digit === 0x41 || digit === 0x42
}
