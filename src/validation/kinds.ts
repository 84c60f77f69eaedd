/** Kinds of single values. */
import { durationText } from '../core/band-label.js'
import { longestWaitMs } from '../core/range.js'
import { durationForms, durationPattern, durationTicks } from './duration.js'
import type { JsonSchema, Kind } from './kind.js'
import type { WarningLogger } from './warnings.js'

export const text: Kind<string> = {
  allowed: 'a string',
  schema: { type: 'string' },
  parse: (value) => (typeof value === 'string' ? value : undefined),
}

export const nonEmptyText: Kind<string> = textMatching('a non-empty string', /\S/)

/** Text of `min` to `max` characters. As in JSON Schema, a surrogate pair counts as one. */
export function boundedText(min: number, max: number): Kind<string> {
  const fits = (value: string): boolean =>
    value.length >= min && (value.length <= max || (value.length <= 2 * max && [...value].length <= max))
  return {
    allowed: min === 0 ? `a string of at most ${max} characters` : `a string of ${min} to ${max} characters`,
    schema: { type: 'string', ...(min > 0 && { minLength: min }), maxLength: max },
    parse: (value) => (typeof value === 'string' && fits(value) ? value : undefined),
  }
}

export function textMatching(allowed: string, pattern: RegExp): Kind<string> {
  return {
    allowed,
    schema: { type: 'string', pattern: pattern.source },
    parse: (value) => (typeof value === 'string' && pattern.test(value) ? value : undefined),
  }
}

/** An id of a rule or rule set, a band label or a resolver name. Its characters are safe in Redis keys, headers and URLs. */
export const identifier = textMatching('1 to 128 characters (letters, digits, . _ - :)', /^[A-Za-z0-9._:-]{1,128}$/)

/** A key prefix, or the name of a database or collection. */
export const keyPrefix = textMatching('1 to 64 characters (letters, digits, . _ - :)', /^[A-Za-z0-9._:-]{1,64}$/)

/** A token that fits into an HTTP header. Clients could never send any other token. */
export const token = textMatching('1 to 1024 printable ASCII characters without spaces', /^[!-~]{1,1024}$/)

export const boolean: Kind<boolean> = {
  allowed: 'true or false',
  schema: { type: 'boolean' },
  parse: (value) => (typeof value === 'boolean' ? value : undefined),
}

/** Accepts numbers only; the string `"10"` is invalid. */
export function wholeNumber(min: number, max = Number.POSITIVE_INFINITY): Kind<number> {
  const isBounded = max !== Number.POSITIVE_INFINITY
  return {
    allowed: `an integer from ${min}${isBounded ? ` to ${max}` : ''}`,
    schema: { type: 'integer', minimum: min, ...(isBounded && { maximum: max }) },
    parse: (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
        ? value + 0 // converts -0 to 0
        : undefined,
  }
}

export const share: Kind<number> = {
  allowed: 'a number greater than 0 and at most 1',
  schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
  parse: (value) => (typeof value === 'number' && value > 0 && value <= 1 ? value : undefined),
}

export const percentage: Kind<number> = {
  allowed: 'a number from 0 to 100',
  schema: { type: 'number', minimum: 0, maximum: 100 },
  parse: (value) => (typeof value === 'number' && value >= 0 && value <= 100 ? value : undefined),
}

/** One of `values`. An alias is accepted too and becomes the value it stands for. */
export function oneOf<T extends string>(
  values: readonly T[],
  aliases: readonly (readonly [string, T])[] = [],
): Kind<T> {
  const byName = new Map<unknown, T>([...values.map((value) => [value, value] as const), ...aliases])
  return {
    allowed: `one of ${values.join(', ')}`,
    schema: { type: 'string', enum: [...byName.keys()] },
    parse: (value) => byName.get(value),
  }
}

/** A timestamp set by a rule store: an ISO 8601 string, or the Date that a database driver returns. */
export const instant: Kind<string> = {
  allowed: 'a date and time such as 2026-01-31T12:00:00Z',
  schema: { type: 'string', format: 'date-time' },
  parse(value) {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.toISOString()
    if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?$/.test(value)) return undefined
    return Number.isNaN(Date.parse(value)) ? undefined : value
  },
}

export const dayTicks = 86_400_000_000

/** A duration, parsed to milliseconds. The bounds are in ticks. */
export const duration = (min: number, max: number): Kind<number> => ({
  allowed: `a duration from ${min === 0 ? '0s' : durationText(min)} to ${durationText(max)} (${durationForms})`,
  schema: durationSchema(min, max),
  parse(value) {
    const ticks = durationTicks(value)
    return ticks !== undefined && ticks >= min && ticks <= max ? ticks / 1_000 : undefined
  },
})

/** Text with a unit. */
export const unitSchema: JsonSchema = { type: 'string', pattern: durationPattern, maxLength: 40 }

/** A number of seconds, or text with a unit. The bounds are in ticks. */
const durationSchema = (min: number, max: number): JsonSchema => ({
  anyOf: [{ type: 'number', minimum: min / 1e6, maximum: max / 1e6 }, unitSchema],
})

/** An option in milliseconds. Fractions are allowed. */
export const millisecondsBetween = (min: number, max: number): Kind<number> => ({
  allowed: `a number of milliseconds from ${min} to ${max}`,
  schema: { type: 'number', minimum: min, maximum: max },
  parse: (value) => (typeof value === 'number' && value >= min && value <= max ? value : undefined),
})

export const milliseconds = millisecondsBetween(0, longestWaitMs)

/** A value that only code can pass, such as a function or an object with methods. */
export const codeValue = <T>(allowed: string, isValid: (value: unknown) => boolean): Kind<T> => ({
  allowed,
  schema: {},
  parse: (value) => (isValid(value) ? (value as T) : undefined),
})

export const abortSignal: Kind<AbortSignal> = codeValue('an AbortSignal', (value) => value instanceof AbortSignal)

export const callback: Kind<(...values: never) => unknown> = codeValue(
  'a function',
  (value) => typeof value === 'function',
)

export const warningLogger: Kind<WarningLogger> = codeValue(
  'a logger: an object with warn(message, fields)',
  (value) => typeof (value as Partial<WarningLogger> | null)?.warn === 'function',
)

/** A value that is validated where it is used. */
export const anyValue: Kind<unknown> = { allowed: 'any value', schema: {}, parse: (value) => value }
