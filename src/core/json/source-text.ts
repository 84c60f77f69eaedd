/**
 * JSON that preserves its source text. The `attributes` of a rule must be returned byte for byte, but JavaScript does not
 * distinguish 1.0 from 1, rounds 12345678901234567890 and moves the member "10" before "b". The source text is therefore kept
 * for each parsed object, and used as long as it still parses to an equal object.
 */
import { builtinModule } from '../runtime/builtin-module.js'
import { compactJson, findJsonRanges, type JsonPath } from './json-ranges.js'

/** Undefined in browsers, where the members must also have the same order. */
const util = builtinModule('node:util')

const isEqual = (a: unknown, b: unknown): boolean =>
  util === undefined ? JSON.stringify(a) === JSON.stringify(b) : util.isDeepStrictEqual(a, b)

const sourceTexts = new WeakMap<object, string>()

/** Changes the white space of a JSON text. */
export type Layout = (text: string) => string

export const keepLayout: Layout = (text) => text

/** Like `JSON.parse`, and keeps the source text of all `attributes` objects, so that `jsonText` writes them unchanged. */
export function parseJson(text: string, layout: Layout = keepLayout): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('"attributes"')) return value
  for (const { path, start, end } of findJsonRanges(text, (name) => name === 'attributes')) {
    const attributes = valueAt(value, path)
    if (typeof attributes === 'object' && attributes !== null)
      keepSourceText(attributes, layout(text.slice(start, end)))
  }
  return value
}

/** Like `JSON.stringify`, but writes objects with a kept source text as that text. `unit` is the indentation per level. */
export const jsonText = (value: unknown, unit?: string): string =>
  withSourceTexts(value, (marked) => JSON.stringify(marked, null, unit))

/** Keeps the source text that was parsed to this object, unless `JSON.stringify` produces the same text. */
export function keepSourceText(value: object, text: string): void {
  if (text !== JSON.stringify(value)) sourceTexts.set(value, text)
  else sourceTexts.delete(value)
}

/** The source text of an object, if it was kept and still parses to an equal object. */
export function sourceTextOf(value: unknown): string | undefined {
  const text = typeof value === 'object' && value !== null ? sourceTexts.get(value) : undefined
  return text !== undefined && isEqual(JSON.parse(text), value) ? text : undefined
}

/** True if the value, or a part of it, has a kept source text. */
export const hasSourceText = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (sourceTextOf(value) !== undefined || Object.values(value).some(hasSourceText))

/** Copies a value deeply, together with its kept source texts. */
export function copyWithSourceText<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  const copy: object = Array.isArray(value)
    ? value.map(copyWithSourceText)
    : // Unlike an assignment, this treats `__proto__` as an ordinary name.
      Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyWithSourceText(member)]))
  const text = sourceTexts.get(value)
  if (text !== undefined) sourceTexts.set(copy, text)
  return copy as T
}

/** True if two values have the same source text, apart from insignificant white space. */
export const hasSameSourceText = (a: unknown, b: unknown): boolean => a === b || comparable(a) === comparable(b)

const comparable = (value: unknown): string => withSourceTexts([value], JSON.stringify, compactJson)

/** Replaces line breaks in a JSON text. Runs in linear time for any length of white space. */
export const onOneLine: Layout = (text) =>
  /[\r\n]/.test(text)
    ? text.replace(/[ \t\r\n]+/g, (run) => (run.includes('\n') || run.includes('\r') ? ' ' : run))
    : text

/** Renders a value in which placeholders replace the objects with a kept source text, and then inserts these texts. */
export function withSourceTexts(
  value: unknown,
  render: (value: unknown) => string,
  layout: Layout = keepLayout,
): string {
  const texts: string[] = []
  placeholder ??= newPlaceholder()
  const rendered = render(withPlaceholders(value, texts, placeholder.word))
  return texts.length === 0
    ? rendered
    : rendered.replace(placeholder.pattern, (_, index) => layout(texts[index] as string))
}

/**
 * Random, so that no document contains it. A plain word in both YAML and JSON. Created at first use, because Cloudflare Workers
 * have no random values while modules are loaded.
 */
let placeholder: { readonly word: string; readonly pattern: RegExp } | undefined

function newPlaceholder() {
  const word = `w${crypto.randomUUID().replaceAll('-', '')}n`
  return { word, pattern: new RegExp(`"?${word}(\\d+)e"?`, 'g') }
}

/** Returns the value itself if it contains no object with a kept source text. */
function withPlaceholders(value: unknown, texts: string[], word: string): unknown {
  if (typeof value !== 'object' || value === null) return value
  const text = sourceTextOf(value)
  if (text !== undefined) return `${word}${texts.push(text) - 1}e`
  const before = texts.length
  if (Array.isArray(value)) {
    const items = value.map((item) => withPlaceholders(item, texts, word))
    return texts.length === before ? value : items
  }
  const members = Object.entries(value).map(([name, member]) => [name, withPlaceholders(member, texts, word)] as const)
  return texts.length === before ? value : Object.fromEntries(members)
}

/** Undefined if a duplicate name hides the path: the last value with that name may have another structure. */
const valueAt = (value: unknown, path: JsonPath): unknown =>
  path.reduce((at, step) => (at as Readonly<Record<string | number, unknown>> | null | undefined)?.[step], value)
