/**
 * JSON that comes back as it was written. The `attributes` of a rule belong to its owner, who gets back every byte of them,
 * although JavaScript cannot tell 1.0 from 1, rounds 12345678901234567890 and puts "10" before "b". The text is kept beside
 * the object that was made of it, and counts as long as that still says the same.
 */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '../scheduling/steps.js'
import { compactJson, type JsonPath, jsonPlaces } from './json-places.js'

const texts = new WeakMap<object, string>()

export type Layout = (text: string) => string

export const asWritten: Layout = (text) => text

/** As `JSON.parse`, and how `attributes` are written is kept: as they are, or in another layout of the same. */
export function parseJson(text: string, layout: Layout = asWritten): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('"attributes"')) return value
  for (const { path, start, end } of jsonPlaces(text, (name) => name === 'attributes')) {
    const found = valueAt(value, path)
    if (typeof found === 'object' && found !== null) keepText(found, layout(text.slice(start, end)))
  }
  return value
}

/** As `JSON.stringify`, with what was written in the place of what it means. `unit` is the indentation of each level. */
export const jsonText = (value: unknown, unit?: string): string =>
  withWriting(value, (marked) => JSON.stringify(marked, null, unit))

const longList = 64
const outerLevels = 6

/** As `jsonText`, with a step after each member of a long list. */
export function* jsonTextSteps(value: unknown, levels = outerLevels): Steps<string> {
  if (levels === 0 || typeof value !== 'object' || value === null || writtenText(value) !== undefined)
    return jsonText(value)
  const parts: string[] = []
  if (Array.isArray(value)) {
    const areShort = value.length > longList && !value.some(hasLongList)
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
  Object.values(value).some((member) => Array.isArray(member) && member.length > longList)

/** Remembers a text of which `JSON.parse` makes this object, unless `JSON.stringify` makes the same text of it. */
export function keepText(value: object, text: string): void {
  if (text !== JSON.stringify(value)) texts.set(value, text)
  else texts.delete(value)
}

/** How an object was written, if that is more than what it says. */
export function writtenText(value: unknown): string | undefined {
  const text = typeof value === 'object' && value !== null ? texts.get(value) : undefined
  return text !== undefined && isDeepStrictEqual(JSON.parse(text), value) ? text : undefined
}

/** The same JSON in objects of its own, with what is known of how it was written. */
export function copyWritten<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  const copy: object = Array.isArray(value)
    ? value.map(copyWritten)
    : // Unlike an assignment, this takes `__proto__` for a name like any other.
      Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyWritten(member)]))
  const text = texts.get(value)
  if (text !== undefined) texts.set(copy, text)
  return copy as T
}

/** Whether two values are the same to their owner. White space between the parts of a text means nothing to anybody. */
export const isWrittenAlike = (a: unknown, b: unknown): boolean => a === b || comparable(a) === comparable(b)

const comparable = (value: unknown): string => withWriting([value], JSON.stringify, compactJson)

/** The same JSON where there is no place for line breaks. Each run of white space is looked at once, however long it is. */
export const onOneLine: Layout = (text) =>
  text.replace(/[ \t\r\n]+/g, (run) => (run.includes('\n') || run.includes('\r') ? ' ' : run))

/** Lets `render` make a text of a value in which marks stand for what was written, and puts that in their place. */
export function withWriting(value: unknown, render: (marked: unknown) => string, layout: Layout = asWritten): string {
  const written: string[] = []
  const rendered = render(marked(value, written))
  return written.length === 0 ? rendered : rendered.replace(marks, (_, index) => layout(written[index] as string))
}

/** Nobody else writes this; in YAML and in JSON it is a word like any other. */
const mark = `w${randomBytes(12).toString('hex')}n`
const marks = new RegExp(`"?${mark}(\\d+)e"?`, 'g')

/** The same value if nothing in it was written otherwise. */
function marked(value: unknown, written: string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  const text = writtenText(value)
  if (text !== undefined) return `${mark}${written.push(text) - 1}e`
  const before = written.length
  if (Array.isArray(value)) {
    const items = value.map((item) => marked(item, written))
    return written.length === before ? value : items
  }
  const members = Object.entries(value).map(([name, member]) => [name, marked(member, written)] as const)
  return written.length === before ? value : Object.fromEntries(members)
}

/** Nothing where a name is given twice: the value of the last one may be of another shape. */
const valueAt = (value: unknown, path: JsonPath): unknown =>
  path.reduce((at, step) => (at as Readonly<Record<string | number, unknown>> | null | undefined)?.[step], value)
