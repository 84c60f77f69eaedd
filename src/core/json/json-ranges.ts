import { closeBrace, closeBracket, endOfString, openBrace, openBracket, quote, skipSpace } from './scanner.js'

/** The member names and array indexes that lead to a value in a JSON document. */
export type JsonPath = readonly (string | number)[]

/** The range of a value in the source text. */
export interface JsonRange {
  readonly path: JsonPath
  readonly start: number
  readonly end: number
}

const comma = 0x2c

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
  let at = skipSpace(text, 0)
  let isInside = false

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
      at = skipSpace(text, at)
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
    at = skipSpace(text, at)
    if (text.charCodeAt(at) === comma) at += 1
    at = skipSpace(text, at)
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
