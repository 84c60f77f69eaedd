import { type Fields, fieldsOf, type Kind, oneSpelling, openFields, wrongValue } from '../../validation/fields.js'
import type { ValidationIssues } from '../../validation/issues.js'
import { quoted } from '../../validation/issues.js'
import { nearest } from '../../validation/nearest.js'

/** The syntax of a predicate or filter. */
export interface PartForm<T> {
  /** Allowed argument names. */
  readonly args: readonly string[]
  /** Converts the text after `Name=` to arguments. */
  short(text: string): Readonly<Record<string, unknown>>
  /** Parses the arguments. Returns undefined and reports issues if they are invalid. */
  read(args: Fields, issues: ValidationIssues): T | undefined
}

export type PartForms<T> = Readonly<Record<string, PartForm<T>>>

/** Reads `Path=/api/**` or `{ name: Path, args: { patterns: [/api/**] } }`. */
export function readPart<T>(
  value: unknown,
  path: string,
  forms: PartForms<T>,
  issues: ValidationIssues,
): T | undefined {
  if (typeof value === 'string') return readShort(value, path, forms, issues)
  const names = Object.keys(forms)
  const allowed = `a string such as ${names[0]}=…, or { name, args }`
  const fields = openFields(value, path, ['name', 'args'], allowed, issues)
  if (fields === undefined) return undefined
  const name = fields.value('name')
  const form = typeof name === 'string' ? formOf(name, fields.at('name'), forms, issues) : undefined
  if (typeof name !== 'string') fields.wrong('name', wrongValue(name, `one of ${names.join(', ')}`))
  if (form === undefined) return undefined
  const place = fields.at('args')
  const args = openFields(
    fields.value('args') ?? {},
    place,
    form.args,
    `an object with ${form.args.join(', ')}`,
    issues,
  )
  return args === undefined ? undefined : form.read(args, issues)
}

function readShort<T>(text: string, path: string, forms: PartForms<T>, issues: ValidationIssues): T | undefined {
  const equals = text.indexOf('=')
  const name = (equals < 0 ? text : text.slice(0, equals)).trim()
  const rest = equals < 0 ? '' : text.slice(equals + 1)
  const form = formOf(name, path, forms, issues)
  return form?.read(fieldsOf(form.short(rest), path, issues), issues)
}

function formOf<T>(name: string, path: string, forms: PartForms<T>, issues: ValidationIssues): PartForm<T> | undefined {
  if (Object.hasOwn(forms, name)) return forms[name]
  const names = Object.keys(forms)
  const suggestion = nearest(name, names)
  const hint = suggestion === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${suggestion}?`
  issues.add(path, `unknown name ${quoted(name)}; ${hint}`)
  return undefined
}

/** `a, b, c` → `{ [name]: ['a', 'b', 'c'] }` */
export const commaList =
  (name: string) =>
  (text: string): Record<string, unknown> => ({ [name]: itemsIn(text) })

/** `a, the rest` → two arguments. Splits at the first comma only, because a regular expression or value may contain commas. */
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

/** Reads one or more values under any of several names, as a list or a comma-separated string. */
export function severalOf<T>(args: Fields, names: readonly string[], kind: Kind<T>): readonly T[] {
  const name = oneSpelling(args, names) ?? (names[0] as string)
  const value = args.value(name)
  if (typeof value !== 'string') return args.list(name, kind, maxItems)
  return fieldsOf({ items: itemsIn(value) }, args.at(name), silent(args, name)).list('items', kind, maxItems)
}

/** Reports issues of list items under the path of the string that contains them. */
function silent(args: Fields, name: string): ValidationIssues {
  return { kept: [], count: 0, add: (_, message) => args.wrong(name, message) }
}

/** Reads a required value under any of several names. */
export function oneNamed<T>(args: Fields, names: readonly string[], kind: Kind<T>): T | undefined {
  return args.require(oneSpelling(args, names) ?? (names[0] as string), kind)
}
