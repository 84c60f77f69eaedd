/** Kinds of structured values: lists and objects. Their invalid members are reported by their own paths. */
import { fieldsOf, isObject, itemsOf, reportUnknown } from './fields.js'
import type { ValidationIssues } from './issues.js'
import { type JsonSchema, type Kind, type Kinds, readValue, structured, type ValueOf, wrongValue } from './kind.js'

/** A list of `min` to `max` items. An invalid item is reported by its index. */
export function list<T>(
  item: Kind<T>,
  { min = 1, max = Number.POSITIVE_INFINITY }: { readonly min?: number; readonly max?: number } = {},
): Kind<readonly T[]> {
  const isBounded = max !== Number.POSITIVE_INFINITY
  const bounds = min === 0 ? `at most ${max}` : `${min} to ${max}`
  const allowed = isBounded ? `a list of ${bounds} items, each ${item.allowed}` : `a list, each item ${item.allowed}`
  const schema = {
    type: 'array',
    items: item.schema,
    ...(min > 0 && { minItems: min }),
    ...(isBounded && { maxItems: max }),
  }
  const fits = (value: unknown): value is readonly unknown[] =>
    Array.isArray(value) && value.length >= min && value.length <= max
  return {
    allowed,
    schema,
    /** Separate from `read`, because long lists are nearly always valid. */
    parse(value) {
      if (!fits(value)) return undefined
      const results: T[] = []
      for (let index = 0; index < value.length; index++) {
        const result = item.parse(value[index])
        if (result === undefined) return undefined
        results.push(result)
      }
      return results
    },
    read(value, path, issues) {
      if (!fits(value)) {
        issues.add(path, wrongValue(value, allowed))
        return undefined
      }
      return itemsOf(value)?.flatMap((given, index) => {
        const result = readValue(item, given, `${path}[${index}]`, issues)
        return result === undefined ? [] : [result]
      })
    },
  }
}

/** A value, or a list of 1 to `max` values. */
export function oneOrMore<T>(item: Kind<T>, max: number, allowed = item.allowed): Kind<readonly T[]> {
  const one = { ...item, allowed }
  const several = list(one, { max })
  return structured(allowed, { anyOf: [item.schema, several.schema] }, (value, path, issues) => {
    if (Array.isArray(value)) return readValue(several, value, path, issues)
    const result = readValue(one, value, path, issues)
    return result === undefined ? undefined : [result]
  })
}

/** A list of strings, or a comma-separated string for environment variables. */
export function textList(allowed: string, item: Kind<unknown>): Kind<readonly string[]> {
  return {
    allowed: `a list, or text separated by commas, of ${allowed}`,
    schema: textListSchema(item.schema),
    parse(value) {
      const items = splitList(value)
      if (!Array.isArray(items) || items.length > 10_000) return undefined
      return items.every((one) => typeof one === 'string' && item.parse(one) !== undefined) ? items : undefined
    },
  }
}

/** Splits a comma-separated string. Any other value is returned unchanged. */
export const splitList = (value: unknown): unknown =>
  typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value

export const textListSchema = (item: JsonSchema): JsonSchema => ({
  anyOf: [{ type: 'array', items: item }, { type: 'string' }],
})

type ObjectValue<R extends Kinds, O extends Kinds> = { readonly [N in keyof R]: ValueOf<R[N]> } & {
  readonly [N in keyof O]?: ValueOf<O[N]>
}

interface ObjectOptions {
  /** Default: `an object`. */
  readonly allowed?: string
  /** Ignores unknown members instead of reporting them. Default: false. */
  readonly isOpen?: boolean
  /** The name of the component in the OpenAPI document. */
  readonly title?: string
  readonly description?: string
}

/** An object with required and optional members. It is validated as it is: members are not converted. */
export function object<R extends Kinds, O extends Kinds = Record<never, never>>(
  required: R,
  optional: O = {} as O,
  { allowed = 'an object', isOpen = false, ...annotations }: ObjectOptions = {},
): Kind<ObjectValue<R, O>> {
  const kinds: Kinds = { ...required, ...optional }
  const names = Object.keys(kinds)
  const requiredNames = Object.keys(required)
  const members = names.map((name) => [name, kinds[name] as Kind<unknown>, requiredNames.includes(name)] as const)
  const schema = {
    type: 'object',
    ...annotations,
    properties: Object.fromEntries(members.map(([name, kind]) => [name, kind.schema])),
    ...(requiredNames.length > 0 && { required: requiredNames }),
    ...(!isOpen && { additionalProperties: false }),
  }
  /** Bodies of the hot path are valid, so they are checked without the work that messages need. */
  const parse = (value: unknown): ObjectValue<R, O> | undefined => {
    if (!isObject(value)) return undefined
    for (const [name, kind, isRequired] of members) {
      const member = value[name]
      if (member === undefined ? isRequired : kind.parse(member) === undefined) return undefined
    }
    if (!isOpen) for (const name in value) if (!names.includes(name)) return undefined
    return value as ObjectValue<R, O>
  }
  const read = (value: unknown, path: string, issues: ValidationIssues): ObjectValue<R, O> | undefined => {
    if (!isObject(value)) {
      issues.add(path === '' ? 'document' : path, wrongValue(value, allowed))
      return undefined
    }
    if (!isOpen) reportUnknown(value, path, names, issues)
    const fields = fieldsOf(value, path, kinds, issues)
    for (const [name, , isRequired] of members) isRequired ? fields.require(name) : fields.read(name)
    return value as ObjectValue<R, O>
  }
  return { allowed, schema, parse, read }
}

/** Clients in some languages send null for omitted members. */
export const nullable = <T>(kind: Kind<T>): Kind<T | null> => ({
  ...kind,
  allowed: `${kind.allowed}, or null`,
  schema: { ...kind.schema, type: [kind.schema.type, 'null'] },
  parse: (value) => (value === null ? null : kind.parse(value)),
  ...(kind.read && {
    read: (value: unknown, path: string, issues: ValidationIssues) =>
      value === null ? null : readValue(kind, value, path, issues),
  }),
})
