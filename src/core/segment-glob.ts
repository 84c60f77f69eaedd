import { isEscapeAt } from './normalise-path.js'

/**
 * Matches one segment against `?` (one character) and `*` (any number). Only the latest `*` is ever extended, so the
 * cost is at most text × glob whatever they contain; no regular expression is built from what a user wrote.
 */
export function matchesGlob(glob: string, text: string): boolean {
  let index = 0
  let star = -1
  let resume = 0
  for (let at = 0; at < text.length; ) {
    const wanted = glob.charCodeAt(index)
    if (wanted === asterisk) {
      star = index++
      resume = at
    } else if (wanted === question) {
      at = characterEnd(text, at)
      index++
    } else if (wanted === text.charCodeAt(at)) {
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

const asterisk = 0x2a
const question = 0x3f

/** An escape such as `%20`, or the several that UTF-8 needs for one character, count as the character they stand for. */
function characterEnd(text: string, start: number): number {
  if (!isEscapeAt(text, start)) return start + 1
  let end = start + 3
  for (let more = continuations(text.charCodeAt(start + 1)); more > 0 && isContinuationAt(text, end); more--) end += 3
  return end
}

/** How many bytes follow one that starts with this hexadecimal digit: C and D one, E two, F three. */
function continuations(digit: number): number {
  if (digit < 0x43) return 0
  return digit <= 0x44 ? 1 : digit - 0x43
}

/** The bytes 80 to BF only ever continue a character. */
function isContinuationAt(text: string, start: number): boolean {
  if (!isEscapeAt(text, start)) return false
  const digit = text.charCodeAt(start + 1)
  return digit === 0x38 || digit === 0x39 || digit === 0x41 || digit === 0x42
}
