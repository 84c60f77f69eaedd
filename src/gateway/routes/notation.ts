import { type Fields, fieldsOf, itemsOf, openFields } from '../../validation/fields.js'
import { quoted, type ValidationIssues } from '../../validation/issues.js'
import { type JsonSchema, type Kind, type Kinds, readValue, structured, wrongValue } from '../../validation/kind.js'
import { anyValue } from '../../validation/kinds.js'
import { nameHint } from '../../validation/nearest.js'
import { list, textListSchema } from '../../validation/structures.js'

type Arguments = Readonly<Record<string, unknown>>

/** How a predicate or filter is written: `Name=shortcut`, or `{ name, args }`. */
export interface Notation<T> {
  readonly args: Kinds
  /** Converts the text after `Name=` to arguments. */
  shortcut(text: string): Arguments
  /** Returns undefined and reports issues if the arguments are invalid. */
  read(args: Arguments, path: string, issues: ValidationIssues): T | undefined
}

export type Notations<T> = Readonly<Record<string, Notation<T>>>

export const notation = <K extends Kinds, T>(
  args: K,
  shortcut: (text: string) => Arguments,
  read: (args: Fields<K>) => T | undefined,
): Notation<T> => ({ args, shortcut, read: (value, path, issues) => read(fieldsOf(value, path, args, issues)) })

const listSchema: JsonSchema = {
  type: 'array',
  items: {
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        properties: { name: { type: 'string' }, args: { type: 'object' } },
        required: ['name'],
        additionalProperties: false,
      },
    ],
  },
}

/** A list of predicates or filters. Null counts as an empty list. Editors do not check names and arguments. */
export const notationList = <T>(notations: Notations<T>): Kind<readonly T[]> =>
  structured('a list', listSchema, (value, path, issues) => {
    const items = value === null ? [] : itemsOf(value)
    if (items === undefined) issues.add(path, wrongValue(value, 'a list'))
    return items?.flatMap((item, index) => {
      const result = readNotation(item, `${path}[${index}]`, notations, issues)
      return result === undefined ? [] : [result]
    })
  })

/** Reads `Path=/api/**` or `{ name: Path, args: { patterns: [/api/**] } }`. */
function readNotation<T>(
  value: unknown,
  path: string,
  notations: Notations<T>,
  issues: ValidationIssues,
): T | undefined {
  if (typeof value === 'string') return readShortcut(value, path, notations, issues)
  const names = Object.keys(notations)
  const allowed = `a string such as ${names[0]}=…, or { name, args }`
  const fields = openFields(value, path, { name: anyValue, args: anyValue }, allowed, issues)
  if (fields === undefined) return undefined
  const name = fields.value('name')
  if (typeof name !== 'string') {
    fields.report('name', wrongValue(name, `one of ${names.join(', ')}`))
    return undefined
  }
  const known = findNotation(name, fields.at('name'), notations, issues)
  if (known === undefined) return undefined
  const args = fields.value('args') ?? {}
  const argsAllowed = `an object with ${Object.keys(known.args).join(', ')}`
  const isObject = openFields(args, fields.at('args'), known.args, argsAllowed, issues) !== undefined
  return isObject ? known.read(args as Arguments, fields.at('args'), issues) : undefined
}

function readShortcut<T>(text: string, path: string, notations: Notations<T>, issues: ValidationIssues): T | undefined {
  const [, name = '', rest = ''] = /^([^=]*)=?(.*)$/s.exec(text) ?? []
  const known = findNotation(name.trim(), path, notations, issues)
  return known?.read(known.shortcut(rest), path, issues)
}

function findNotation<T>(
  name: string,
  path: string,
  notations: Notations<T>,
  issues: ValidationIssues,
): Notation<T> | undefined {
  if (Object.hasOwn(notations, name)) return notations[name]
  issues.add(path, `unknown name ${quoted(name)}; ${nameHint(name, Object.keys(notations))}`)
  return undefined
}

/** `a, b, c` → `{ [name]: ['a', 'b', 'c'] }` */
export const commaList =
  (name: string) =>
  (text: string): Arguments => ({ [name]: splitItems(text) })

/** `a, the rest` → two arguments. Splits at the first comma only, because a regular expression or value may contain commas. */
export const pair =
  (first: string, second: string) =>
  (text: string): Arguments => {
    const comma = text.indexOf(',')
    if (comma === -1) return { [first]: text.trim() }
    return { [first]: text.slice(0, comma).trim(), [second]: text.slice(comma + 1).trim() }
  }

export const single =
  (name: string) =>
  (text: string): Arguments => ({ [name]: text.trim() })

const splitItems = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/** One or more values, as a list or a comma-separated string. Invalid items of a string are reported by the path of the string. */
export function several<T>(item: Kind<T>): Kind<readonly T[]> {
  const items = list(item, { max: 256 })
  return structured(items.allowed, textListSchema(item.schema), (value, path, issues) => {
    if (typeof value !== 'string') return readValue(items, value, path, issues)
    const atPath: ValidationIssues = { kept: [], count: 0, add: (_, message) => issues.add(path, message) }
    return readValue(items, splitItems(value), path, atPath)
  })
}
