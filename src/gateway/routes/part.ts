import { type Fields, fieldsOf, type Kind, oneSpelling, openFields, wrongValue } from '../../validation/fields.js'
import type { Mistakes } from '../../validation/issues.js'
import { quoted } from '../../validation/issues.js'
import { nearest } from '../../validation/nearest.js'

/** A predicate or a filter as it may be written. */
export interface PartForm<T> {
  /** Every name that an argument may have. */
  readonly args: readonly string[]
  /** The text behind `Name=` as arguments. */
  short(text: string): Readonly<Record<string, unknown>>
  /** What it means; undefined if it has mistakes, which are then reported. */
  read(args: Fields, mistakes: Mistakes): T | undefined
}

export type PartForms<T> = Readonly<Record<string, PartForm<T>>>

/** `Path=/api/**`, or `{ name: Path, args: { patterns: [/api/**] } }`. */
export function readPart<T>(value: unknown, path: string, forms: PartForms<T>, mistakes: Mistakes): T | undefined {
  if (typeof value === 'string') return readShort(value, path, forms, mistakes)
  const names = Object.keys(forms)
  const allowed = `text such as ${names[0]}=…, or { name, args }`
  const fields = openFields(value, path, ['name', 'args'], allowed, mistakes)
  if (fields === undefined) return undefined
  const name = fields.value('name')
  const form = typeof name === 'string' ? formOf(name, fields.at('name'), forms, mistakes) : undefined
  if (typeof name !== 'string') fields.wrong('name', wrongValue(name, names.join(', ')))
  if (form === undefined) return undefined
  const place = fields.at('args')
  const args = openFields(
    fields.value('args') ?? {},
    place,
    form.args,
    `an object of ${form.args.join(', ')}`,
    mistakes,
  )
  return args === undefined ? undefined : form.read(args, mistakes)
}

function readShort<T>(text: string, path: string, forms: PartForms<T>, mistakes: Mistakes): T | undefined {
  const equals = text.indexOf('=')
  const name = (equals < 0 ? text : text.slice(0, equals)).trim()
  const rest = equals < 0 ? '' : text.slice(equals + 1)
  const form = formOf(name, path, forms, mistakes)
  return form?.read(fieldsOf(form.short(rest), path, mistakes), mistakes)
}

function formOf<T>(name: string, path: string, forms: PartForms<T>, mistakes: Mistakes): PartForm<T> | undefined {
  if (Object.hasOwn(forms, name)) return forms[name]
  const names = Object.keys(forms)
  const meant = nearest(name, names)
  const hint = meant === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${meant}?`
  mistakes.add(path, `found ${quoted(name)}; ${hint}`)
  return undefined
}

/** `a, b, c` → `{ [name]: ['a', 'b', 'c'] }` */
export const commaList =
  (name: string) =>
  (text: string): Record<string, unknown> => ({ [name]: itemsIn(text) })

/** `a, the rest` → two arguments. Only the first comma separates, so that a regular expression or a value may have more. */
export const pair =
  (first: string, second: string) =>
  (text: string): Record<string, unknown> => {
    const comma = text.indexOf(',')
    if (comma === -1) return { [first]: text.trim() }
    return { [first]: text.slice(0, comma).trim(), [second]: text.slice(comma + 1).trim() }
  }

export const single =
  (name: string) =>
  (text: string): Record<string, unknown> => ({ [name]: text.trim() })

const itemsIn = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

const maxItems = 256

/** One or several values under one of several names: a list, or text with commas. */
export function severalOf<T>(args: Fields, names: readonly string[], kind: Kind<T>): readonly T[] {
  const name = oneSpelling(args, names) ?? (names[0] as string)
  const value = args.value(name)
  if (typeof value !== 'string') return args.list(name, kind, maxItems)
  return fieldsOf({ items: itemsIn(value) }, args.at(name), silent(args, name)).list('items', kind, maxItems)
}

/** Mistakes inside a text are mistakes of the text. */
function silent(args: Fields, name: string): Mistakes {
  return { kept: [], count: 0, add: (_, message) => args.wrong(name, message) }
}

/** One value under one of several names; leaving it out is a mistake. */
export function oneNamed<T>(args: Fields, names: readonly string[], kind: Kind<T>): T | undefined {
  return args.require(oneSpelling(args, names) ?? (names[0] as string), kind)
}
