/** Positions in a JSON text, for functions that need more than the parsed value. */

export const quote = 0x22
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const openBrace = 0x7b
export const closeBrace = 0x7d
const backslash = 0x5c

/** Returns the offset of the first character that is not white space. */
export function skipSpace(text: string, start: number): number {
  let offset = start
  while (isSpace(text.charCodeAt(offset))) offset += 1
  return offset
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** Returns the offset after the string that opens at `start`; the length of the text if it is not closed. Does not validate the characters of the string. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end < 0 ? text.length : end + 1
}

function isEscaped(text: string, offset: number): boolean {
  let first = offset
  while (text.charCodeAt(first - 1) === backslash) first -= 1
  return (offset - first) % 2 === 1
}
