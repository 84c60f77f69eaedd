import { describeValue, placeOf, quoted, type ValidationIssues } from './issues.js'
import { nearest } from './nearest.js'

/** A kind of value. `parse` returns `undefined` for an invalid value. */
export interface Kind<T> {
  /** Completes the message "must be …". */
  readonly allowed: string
  parse(value: unknown): T | undefined
}

/**
 * An object of a document. Only own properties count, so `constructor` and `__proto__` are never inherited.
 * A property with the value `undefined` counts as omitted.
 */
export interface Fields {
  has(name: string): boolean
  value(name: string): unknown
  /** The path of the field, for messages. */
  at(name: string): string
  /** Returns `undefined` if the field is omitted or invalid. An invalid field is reported. */
  read<T>(name: string, kind: Kind<T>): T | undefined
  /** Like `read`, but an omitted field is reported as well. */
  require<T>(name: string, kind: Kind<T>): T | undefined
  /** Reads a list of 1 to `max` values. Invalid items are reported by their index and omitted. */
  list<T>(name: string, kind: Kind<T>, max: number): readonly T[]
  wrong(name: string, message: string): void
}

/** Reports fields that are not in `names`. Returns `undefined`, and reports `value`, if it is not an object. */
export function openFields(
  value: unknown,
  path: string,
  names: readonly string[],
  allowed: string,
  issues: ValidationIssues,
): Fields | undefined {
  if (!isObject(value)) {
    issues.add(path === '' ? 'document' : path, wrongValue(value, allowed))
    return undefined
  }
  for (const name of Object.keys(value)) {
    if (names.includes(name) || value[name] === undefined) continue
    const suggestion = nearest(name, names)
    const hint = suggestion === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${suggestion}?`
    issues.add(placeOf(path, name), `unknown field ${quoted(name)}; ${hint}`)
  }
  return fieldsOf(value, path, issues)
}

export function fieldsOf(object: Readonly<Record<string, unknown>>, path: string, issues: ValidationIssues): Fields {
  const ownValue = (name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined)
  const at = (name: string): string => placeOf(path, name)
  const parsed = <T>(name: string, kind: Kind<T>): T | undefined => {
    const value = ownValue(name)
    const result = kind.parse(value)
    if (result === undefined) issues.add(at(name), invalidValue(value, kind))
    return result
  }
  return {
    has: (name) => ownValue(name) !== undefined,
    value: ownValue,
    at,
    read: (name, kind) => (ownValue(name) === undefined ? undefined : parsed(name, kind)),
    require: parsed,
    list(name, kind, max) {
      const given = itemsOf(ownValue(name))
      if (given === undefined || given.length === 0 || given.length > max) {
        issues.add(at(name), wrongValue(ownValue(name), `a list of 1 to ${max} items, each ${kind.allowed}`))
        return []
      }
      return given.flatMap((value, index) => {
        const result = kind.parse(value)
        if (result === undefined) issues.add(`${at(name)}[${index}]`, invalidValue(value, kind))
        return result === undefined ? [] : [result]
      })
    },
    wrong: (name, message) => issues.add(at(name), message),
  }
}

/** Returns the name under which a field with aliases is given. If several are given, the first one counts and the others are reported. */
export function oneSpelling(fields: Fields, spellings: readonly string[]): string | undefined {
  const given = spellings.filter((name) => fields.has(name))
  for (const extra of given.slice(1)) {
    fields.wrong(
      extra,
      `must not be combined with ${given[0]}, which means the same; use only one of ${spellings.join(', ')}`,
    )
  }
  return given[0]
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Copies the items of a list into a dense array, without extra properties; `undefined` if `value` is not a list. */
export function itemsOf(value: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items: unknown[] = []
  for (let index = 0; index < value.length; index++) items.push(value[index])
  return items
}

function invalidValue(value: unknown, kind: Kind<unknown>): string {
  const message = wrongValue(value, kind.allowed)
  if (typeof value !== 'string' || !/^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false)$/.test(value)) return message
  return kind.parse(JSON.parse(value)) === undefined ? message : `${message}. Remove the quotes`
}

/** The message for an invalid value: `must be true or false; received 7`. */
export const wrongValue = (value: unknown, allowed: string): string =>
  `must be ${allowed}; received ${describeValue(value)}`
