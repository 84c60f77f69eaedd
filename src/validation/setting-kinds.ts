/** Kinds of settings: how a value is parsed, and its JSON Schema for editors. */
import { durationText } from '../core/band-label.js'
import { durationForms, durationTicks } from './duration.js'
import type { Kind } from './fields.js'
import * as kinds from './kinds.js'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface SettingKind<T> extends Kind<T> {
  /** Says less than `parse` where JSON Schema cannot say it. */
  readonly schema: JsonSchema
}

export const described = <T>(kind: Kind<T>, schema: JsonSchema): SettingKind<T> => ({ ...kind, schema })

export const yesOrNo = described(kinds.yesOrNo, { type: 'boolean' })

export const identifier = described(kinds.identifier, { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' })

export const wholeNumber = (min: number, max: number): SettingKind<number> =>
  described(kinds.wholeNumber(min, max), { type: 'integer', minimum: min, maximum: max })

export const oneOf = <T extends string>(
  values: readonly T[],
  aliases: readonly (readonly [string, T])[] = [],
): SettingKind<T> => described(kinds.oneOf(values, aliases), { enum: [...values, ...aliases.map(([alias]) => alias)] })

export const filledText: SettingKind<string> = {
  allowed: 'text that is not empty',
  parse: (value) => (typeof value === 'string' && value.trim() !== '' ? value : undefined),
  schema: { type: 'string', pattern: '\\S' },
}

export const share: SettingKind<number> = {
  allowed: 'a number above 0, at most 1',
  parse: (value) => (typeof value === 'number' && value > 0 && value <= 1 ? value : undefined),
  schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
}

/** The part of the name of a key, a database or a collection. */
export const keyPrefix: SettingKind<string> = {
  allowed: '1 to 64 of letters, digits, . _ - :',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._:-]{1,64}$/.test(value) ? value : undefined),
  schema: { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,64}$' },
}

/** What a header can carry: anything else would never be right, and nobody would know why. */
export const token: SettingKind<string> = {
  allowed: '1 to 1024 visible characters of ASCII, without spaces',
  parse: (value) => (typeof value === 'string' && /^[\x21-\x7e]{1,1024}$/.test(value) ? value : undefined),
  schema: { type: 'string', pattern: '^[!-~]{1,1024}$' },
}

export const dayTicks = 86_400_000_000

/** In milliseconds; the bounds are in ticks. */
export const duration = (min: number, max: number): SettingKind<number> => ({
  allowed: `${durationForms}, from ${min === 0 ? '0s' : durationText(min)} to ${durationText(max)}`,
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

/** A list, or text with commas. */
export function listSchema(item: JsonSchema): JsonSchema {
  return { anyOf: [{ type: 'array', items: item }, { type: 'string' }] }
}
