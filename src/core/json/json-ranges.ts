/** The member names and array indexes that lead to a value in a JSON document. */
export type JsonPath = readonly (string | number)[]

/** The range of a value in the source text. */
export interface JsonRange {
  readonly path: JsonPath
  readonly start: number
  readonly end: number
}

const space = 0x20
const quote = 0x22
const comma = 0x2c
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/**
 * Finds the source ranges of the values that `isSelectedValue` selects. `text` must be valid JSON. Values inside a selected value are
 * not visited. `name` is the last element of `path`; the array is reused, so `isSelectedValue` must not keep it.
 */
export function findJsonRanges(
  text: string,
  isSelectedValue: (name: string | number, path: JsonPath) => boolean,
): JsonRange[] {
  const ranges: JsonRange[] = []
  const path: (string | number)[] = []
  let at = 0
  let isInside = false

  const skipSpace = (): void => {
    while (text.charCodeAt(at) <= space) at += 1
  }
  const value = (): void => {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === openBrace || code === openBracket) members(code === openBrace)
    else at = endOfWord(text, at)
  }
  const members = (haveNames: boolean): void => {
    at += 1
    for (let index = 0; hasMember(); index++) {
      path.push(haveNames ? memberName() : index)
      skipSpace()
      const start = at
      const isSelected = !isInside && isSelectedValue(path.at(-1) as string | number, path)
      isInside ||= isSelected
      value()
      if (isSelected) ranges.push({ path: [...path], start, end: at })
      isInside &&= !isSelected
      path.pop()
    }
  }
  /** Moves to the next member and returns true, or moves past the closing bracket and returns false. */
  const hasMember = (): boolean => {
    skipSpace()
    if (text.charCodeAt(at) === comma) at += 1
    skipSpace()
    const code = text.charCodeAt(at)
    if (code !== closeBrace && code !== closeBracket) return true
    at += 1
    return false
  }
  const memberName = (): string => {
    const start = at
    at = endOfString(text, at)
    const name: unknown = JSON.parse(text.slice(start, at))
    at = text.indexOf(':', at) + 1
    return String(name)
  }

  skipSpace()
  value()
  return ranges
}

/** The end of a number, `true`, `false` or `null`. */
function endOfWord(text: string, start: number): number {
  wordEnd.lastIndex = start
  return wordEnd.exec(text)?.index ?? text.length
}

const wordEnd = /[\s,\]}]/g

/** Removes insignificant white space. */
export function compactJson(text: string): string {
  let compact = ''
  for (let at = 0; at < text.length; ) {
    const start = text.indexOf('"', at)
    const next = start < 0 ? text.length : start
    const end = start < 0 ? text.length : endOfString(text, start)
    compact += text.slice(at, next).replace(/\s+/g, '') + text.slice(next, end)
    at = end
  }
  return compact
}

/** The position after the closing quotation mark. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text.charCodeAt(first - 1) === backslash) first -= 1
  return (at - first) % 2 === 1
}
