/** Value kinds of settings. Each parses a value, describes what is allowed, and has a JSON Schema for editors. */
import { durationText } from '../core/band-label.js'
import { durationForms, durationTicks } from './duration.js'
import type { Kind } from './fields.js'
import * as kinds from './kinds.js'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface SettingKind<T> extends Kind<T> {
  /** May accept more than `parse`, where JSON Schema cannot express a constraint. */
  readonly schema: JsonSchema
}

export const described = <T>(kind: Kind<T>, schema: JsonSchema): SettingKind<T> => ({ ...kind, schema })

export const boolean = described(kinds.boolean, { type: 'boolean' })

export const identifier = described(kinds.identifier, { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' })

export const wholeNumber = (min: number, max: number): SettingKind<number> =>
  described(kinds.wholeNumber(min, max), { type: 'integer', minimum: min, maximum: max })

export const oneOf = <T extends string>(
  values: readonly T[],
  aliases: readonly (readonly [string, T])[] = [],
): SettingKind<T> => described(kinds.oneOf(values, aliases), { enum: [...values, ...aliases.map(([alias]) => alias)] })

export const filledText: SettingKind<string> = {
  allowed: 'a non-empty string',
  parse: (value) => (typeof value === 'string' && value.trim() !== '' ? value : undefined),
  schema: { type: 'string', pattern: '\\S' },
}

export const share: SettingKind<number> = {
  allowed: 'a number greater than 0 and at most 1',
  parse: (value) => (typeof value === 'number' && value > 0 && value <= 1 ? value : undefined),
  schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
}

/** A key prefix, or the name of a database or collection. */
export const keyPrefix: SettingKind<string> = {
  allowed: '1 to 64 characters (letters, digits, . _ - :)',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._:-]{1,64}$/.test(value) ? value : undefined),
  schema: { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,64}$' },
}

/** A token that fits into an HTTP header. Clients could never send any other token. */
export const token: SettingKind<string> = {
  allowed: '1 to 1024 printable ASCII characters without spaces',
  parse: (value) => (typeof value === 'string' && /^[\x21-\x7e]{1,1024}$/.test(value) ? value : undefined),
  schema: { type: 'string', pattern: '^[!-~]{1,1024}$' },
}

export const dayTicks = 86_400_000_000

/** A duration, parsed to milliseconds. The bounds are in ticks. */
export const duration = (min: number, max: number): SettingKind<number> => ({
  allowed: `a duration from ${min === 0 ? '0s' : durationText(min)} to ${durationText(max)} (${durationForms})`,
  parse(value) {
    const ticks = durationTicks(value)
    return ticks !== undefined && ticks >= min && ticks <= max ? ticks / 1_000 : undefined
  },
  schema: {
    anyOf: [
      { type: 'number', minimum: min / 1e6, maximum: max / 1e6 },
      { type: 'string', pattern: '^\\d+(\\.\\d+)? ?(ms|s|m|h|d)$' },
    ],
  },
})

/** A list, or a comma-separated string. */
export function listSchema(item: JsonSchema): JsonSchema {
  return { anyOf: [{ type: 'array', items: item }, { type: 'string' }] }
}
