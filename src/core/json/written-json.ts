/**
 * JSON that preserves its source text. The `attributes` of a rule must be returned byte for byte, but JavaScript does not
 * distinguish 1.0 from 1, rounds 12345678901234567890 and moves the member "10" before "b". The source text is therefore kept
 * for each parsed object, and used as long as it still parses to an equal object.
 */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '../scheduling/steps.js'
import { compactJson, type JsonPath, jsonPlaces } from './json-places.js'

const sourceTexts = new WeakMap<object, string>()

/** Changes the white space of a JSON text. */
export type Layout = (text: string) => string

export const asWritten: Layout = (text) => text

/** As `JSON.parse`, and keeps the source text of all `attributes` objects, so that `jsonText` writes them unchanged. */
export function parseJson(text: string, layout: Layout = asWritten): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('"attributes"')) return value
  for (const { path, start, end } of jsonPlaces(text, (name) => name === 'attributes')) {
    const found = valueAt(value, path)
    if (typeof found === 'object' && found !== null) keepText(found, layout(text.slice(start, end)))
  }
  return value
}

/** As `JSON.stringify`, but writes objects with a kept source text as that text. `unit` is the indentation per level. */
export const jsonText = (value: unknown, unit?: string): string =>
  withWriting(value, (marked) => JSON.stringify(marked, null, unit))

const longListLength = 64
const maxSlicedDepth = 6

/** As `jsonText`, as a sliced task that yields after each array element down to the given depth. */
export function* jsonTextSteps(value: unknown, levels = maxSlicedDepth): Steps<string> {
  if (levels === 0 || typeof value !== 'object' || value === null || writtenText(value) !== undefined)
    return jsonText(value)
  const parts: string[] = []
  if (Array.isArray(value)) {
    const areShort = value.length > longListLength && !value.some(hasLongList)
    for (const item of value) {
      parts.push((areShort ? jsonText(item) : yield* jsonTextSteps(item, levels - 1)) ?? 'null')
      yield
    }
    return `[${parts.join(',')}]`
  }
  for (const [name, member] of Object.entries(value))
    if (member !== undefined) parts.push(`${JSON.stringify(name)}:${yield* jsonTextSteps(member, levels - 1)}`)
  return `{${parts.join(',')}}`
}

const hasLongList = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).some((member) => Array.isArray(member) && member.length > longListLength)

/** Keeps the source text that was parsed to this object, unless `JSON.stringify` produces the same text. */
export function keepText(value: object, text: string): void {
  if (text !== JSON.stringify(value)) sourceTexts.set(value, text)
  else sourceTexts.delete(value)
}

/** The source text of an object, if it was kept and still parses to an equal object. */
export function writtenText(value: unknown): string | undefined {
  const text = typeof value === 'object' && value !== null ? sourceTexts.get(value) : undefined
  return text !== undefined && isDeepStrictEqual(JSON.parse(text), value) ? text : undefined
}

/** Copies a JSON value deeply, including the kept source texts. */
export function copyWritten<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  const copy: object = Array.isArray(value)
    ? value.map(copyWritten)
    : // Unlike an assignment, this treats `__proto__` as an ordinary name.
      Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyWritten(member)]))
  const text = sourceTexts.get(value)
  if (text !== undefined) sourceTexts.set(copy, text)
  return copy as T
}

/** True if two values have the same source text, apart from insignificant white space. */
export const isWrittenAlike = (a: unknown, b: unknown): boolean => a === b || comparable(a) === comparable(b)

const comparable = (value: unknown): string => withWriting([value], JSON.stringify, compactJson)

/** Replaces line breaks in a JSON text. Runs in linear time for any length of white space. */
export const onOneLine: Layout = (text) =>
  text.replace(/[ \t\r\n]+/g, (run) => (run.includes('\n') || run.includes('\r') ? ' ' : run))

/** Renders a value in which placeholders replace the objects with a kept source text, and then inserts these texts. */
export function withWriting(value: unknown, render: (value: unknown) => string, layout: Layout = asWritten): string {
  const texts: string[] = []
  const rendered = render(withPlaceholders(value, texts))
  return texts.length === 0 ? rendered : rendered.replace(placeholders, (_, index) => layout(texts[index] as string))
}

/** Random, so that no document contains it. A plain word in both YAML and JSON. */
const placeholder = `w${randomBytes(12).toString('hex')}n`
const placeholders = new RegExp(`"?${placeholder}(\\d+)e"?`, 'g')

/** Returns the value itself if it contains no object with a kept source text. */
function withPlaceholders(value: unknown, texts: string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  const text = writtenText(value)
  if (text !== undefined) return `${placeholder}${texts.push(text) - 1}e`
  const before = texts.length
  if (Array.isArray(value)) {
    const items = value.map((item) => withPlaceholders(item, texts))
    return texts.length === before ? value : items
  }
  const members = Object.entries(value).map(([name, member]) => [name, withPlaceholders(member, texts)] as const)
  return texts.length === before ? value : Object.fromEntries(members)
}

/** Undefined if a duplicate name hides the path: the last value with that name may have another structure. */
const valueAt = (value: unknown, path: JsonPath): unknown =>
  path.reduce((at, step) => (at as Readonly<Record<string | number, unknown>> | null | undefined)?.[step], value)
