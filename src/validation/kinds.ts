import type { Kind } from './fields.js'

export const text: Kind<string> = {
  allowed: 'a string',
  parse: (value) => (typeof value === 'string' ? value : undefined),
}

export const boolean: Kind<boolean> = {
  allowed: 'true or false',
  parse: (value) => (typeof value === 'boolean' ? value : undefined),
}

/** An id of a rule or rule set, a band label or a resolver name. Its characters are safe in Redis keys, headers and URLs. */
export const identifier: Kind<string> = {
  allowed: '1 to 128 characters (letters, digits, . _ - :)',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(value) ? value : undefined),
}

/** Accepts numbers only; the string `"10"` is invalid. */
export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    allowed: `a whole number from ${min} to ${max}`,
    parse: (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? value + 0 // converts -0 to 0
        : undefined,
  }
}

/** One of `values`. An alias is accepted too and becomes the value it stands for. */
export function oneOf<T extends string>(
  values: readonly T[],
  aliases: readonly (readonly [string, T])[] = [],
): Kind<T> {
  const byName = new Map<unknown, T>([...values.map((value) => [value, value] as const), ...aliases])
  return { allowed: `one of ${values.join(', ')}`, parse: (value) => byName.get(value) }
}

/** A timestamp set by a rule store: an ISO 8601 string, or the Date that a database driver returns. */
export const instant: Kind<string> = {
  allowed: 'a date and time such as 2026-01-31T12:00:00Z',
  parse(value) {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.toISOString()
    if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?$/.test(value)) return undefined
    return Number.isNaN(Date.parse(value)) ? undefined : value
  },
}
