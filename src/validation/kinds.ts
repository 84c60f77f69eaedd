import type { Kind } from './fields.js'

export const text: Kind<string> = {
  allowed: 'text',
  parse: (value) => (typeof value === 'string' ? value : undefined),
}

export const yesOrNo: Kind<boolean> = {
  allowed: 'true or false',
  parse: (value) => (typeof value === 'boolean' ? value : undefined),
}

/** Ids of rules and sets, labels of bands, names of resolvers: safe in a key, a header and a URL. */
export const identifier: Kind<string> = {
  allowed: '1 to 128 of letters, digits, . _ - :',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(value) ? value : undefined),
}

/** An actual number: `"10"` is text. */
export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    allowed: `a whole number from ${min} to ${max}`,
    parse: (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? value + 0 // -0 becomes 0
        : undefined,
  }
}

export function oneOf<T extends string>(
  values: readonly T[],
  aliases: readonly (readonly [string, T])[] = [],
): Kind<T> {
  const byName = new Map<unknown, T>([...values.map((value) => [value, value] as const), ...aliases])
  return { allowed: values.join(', '), parse: (value) => byName.get(value) }
}

/** When a store wrote something: ISO 8601 text, or a Date as drivers return it. */
export const instant: Kind<string> = {
  allowed: 'a date and time such as 2026-01-31T12:00:00Z',
  parse(value) {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.toISOString()
    if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?$/.test(value)) return undefined
    return Number.isNaN(Date.parse(value)) ? undefined : value
  },
}
