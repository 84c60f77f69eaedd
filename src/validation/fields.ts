import { found, type Mistakes, placeOf, quoted } from './issues.js'
import { nearest } from './nearest.js'

/** What one value may be. `parse` answers `undefined` for anything that is not allowed. */
export interface Kind<T> {
  /** For people: completes "allowed: …". */
  readonly allowed: string
  parse(value: unknown): T | undefined
}

/**
 * One object of a document. Only its own properties exist, so neither `constructor` nor `__proto__` means anything.
 * A property that is `undefined` counts as left out.
 */
export interface Fields {
  has(name: string): boolean
  value(name: string): unknown
  /** The field's place, for messages. */
  at(name: string): string
  /** `undefined` if it is left out, or mistaken and reported. */
  read<T>(name: string, kind: Kind<T>): T | undefined
  /** As `read`, and leaving it out is a mistake. */
  require<T>(name: string, kind: Kind<T>): T | undefined
  /** A list of 1 to `max` values of a kind; the mistaken ones are reported by their place and left out. */
  list<T>(name: string, kind: Kind<T>, max: number): readonly T[]
  wrong(name: string, message: string): void
}

/** Opens an object and reports what it has beyond `names`; `undefined` if it is no object at all. */
export function openFields(
  value: unknown,
  path: string,
  names: readonly string[],
  allowed: string,
  mistakes: Mistakes,
): Fields | undefined {
  if (!isObject(value)) {
    mistakes.add(path === '' ? 'document' : path, wrongValue(value, allowed))
    return undefined
  }
  for (const name of Object.keys(value)) {
    if (names.includes(name) || value[name] === undefined) continue
    const meant = nearest(name, names)
    const hint = meant === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${meant}?`
    mistakes.add(placeOf(path, name), `unknown field ${quoted(name)}; ${hint}`)
  }
  return fieldsOf(value, path, mistakes)
}

export function fieldsOf(object: Readonly<Record<string, unknown>>, path: string, mistakes: Mistakes): Fields {
  const ownValue = (name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined)
  const at = (name: string): string => placeOf(path, name)
  const parsed = <T>(name: string, kind: Kind<T>): T | undefined => {
    const value = ownValue(name)
    const result = kind.parse(value)
    if (result === undefined) mistakes.add(at(name), wrongValue(value, kind.allowed))
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
        mistakes.add(at(name), wrongValue(ownValue(name), `a list of 1 to ${max} of these: ${kind.allowed}`))
        return []
      }
      return given.flatMap((value, index) => {
        const result = kind.parse(value)
        if (result === undefined) mistakes.add(`${at(name)}[${index}]`, wrongValue(value, kind.allowed))
        return result === undefined ? [] : [result]
      })
    },
    wrong: (name, message) => mistakes.add(at(name), message),
  }
}

/** One of several spellings of a field; giving two of them is a mistake, and the first one counts. */
export function oneSpelling(fields: Fields, spellings: readonly string[]): string | undefined {
  const given = spellings.filter((name) => fields.has(name))
  for (const extra of given.slice(1)) {
    fields.wrong(extra, `found beside ${given[0]}, which means the same; allowed: only one of ${spellings.join(', ')}`)
  }
  return given[0]
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The members of a list: a plain copy without holes, whatever else the list has been given. */
export function itemsOf(value: unknown): readonly unknown[] | undefined {
  if (!Array.isArray(value)) return undefined
  const items: unknown[] = []
  for (let index = 0; index < value.length; index++) items.push(value[index])
  return items
}

export const wrongValue = (value: unknown, allowed: string): string => `found ${found(value)}; allowed: ${allowed}`
