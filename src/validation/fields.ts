import { placeOf, quoted, type ValidationIssues } from './issues.js'
import { type Kind, type Kinds, readValue, type ValueOf, wrongValue } from './kind.js'
import { nameHint } from './nearest.js'

/**
 * An object of a document. Only own properties count, so `constructor` and `__proto__` are never inherited. A property with the
 * value `undefined` counts as omitted.
 */
export interface FieldValues {
  /** The path of the object, for messages. */
  readonly path: string
  readonly issues: ValidationIssues
  has(name: string): boolean
  value(name: string): unknown
  /** The path of a field, for messages. */
  at(name: string): string
  report(name: string, message: string): void
  /** The same object with other kinds of fields. */
  as<K extends Kinds>(kinds: K): Fields<K>
}

/** An object whose fields are described by the kinds `K`. */
export interface Fields<K extends Kinds> extends FieldValues {
  /** Returns `undefined` if the field is omitted or invalid. An invalid field is reported. */
  read<N extends keyof K & string>(name: N): ValueOf<K[N]> | undefined
  /** Like `read`, but an omitted field is reported as well. */
  require<N extends keyof K & string>(name: N): ValueOf<K[N]> | undefined
}

/** Reports fields that `kinds` does not have. Returns `undefined`, and reports `value`, if it is not an object. */
export function openFields<K extends Kinds>(
  value: unknown,
  path: string,
  kinds: K,
  allowed: string,
  issues: ValidationIssues,
): Fields<K> | undefined {
  if (!isObject(value)) {
    issues.add(path === '' ? 'document' : path, wrongValue(value, allowed))
    return undefined
  }
  reportUnknown(value, path, Object.keys(kinds), issues)
  return fieldsOf(value, path, kinds, issues)
}

export function reportUnknown(value: object, path: string, names: readonly string[], issues: ValidationIssues): void {
  for (const [name, member] of Object.entries(value))
    if (member !== undefined && !names.includes(name))
      issues.add(placeOf(path, name), `unknown field ${quoted(name)}; ${nameHint(name, names)}`)
}

export function fieldsOf<K extends Kinds>(
  object: Readonly<Record<string, unknown>>,
  path: string,
  kinds: K,
  issues: ValidationIssues,
): Fields<K> {
  const ownValue = (name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined)
  const at = (name: string): string => placeOf(path, name)
  const parsed = <N extends keyof K & string>(name: N): ValueOf<K[N]> | undefined =>
    readValue(kinds[name] as Kind<ValueOf<K[N]>>, ownValue(name), at(name), issues)
  return {
    path,
    issues,
    has: (name) => ownValue(name) !== undefined,
    value: ownValue,
    at,
    read: (name) => (ownValue(name) === undefined ? undefined : parsed(name)),
    require: parsed,
    report: (name, message) => issues.add(at(name), message),
    as: (others) => fieldsOf(object, path, others, issues),
  }
}

/** Returns the name under which a field with aliases is given. If several are given, the first one counts and the others are reported. */
export function givenAlias<N extends string>(fields: FieldValues, aliases: readonly N[]): N | undefined {
  const [name, ...extra] = aliases.filter((alias) => fields.has(alias))
  for (const other of extra)
    fields.report(
      other,
      `must not be combined with ${name}, which means the same; use only one of ${aliases.join(', ')}`,
    )
  return name
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
