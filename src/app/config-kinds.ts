/** What settings may be: for the reader of the file, and as JSON Schema for editors. */
import { durationText } from '../core/band-label.js'
import { durationForms, durationTicks } from '../rules/duration.js'
import type { Kind } from '../rules/fields.js'
import * as rules from '../rules/kinds.js'
import * as edge from './config-edge.js'
import { nodeForms, parseNode, parseRedisUri, type RedisNode, uriForms } from './open-redis-address.js'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface SettingKind<T> extends Kind<T> {
  /** Says less than `parse` where JSON Schema cannot say it. */
  readonly schema: JsonSchema
}

const described = <T>(kind: Kind<T>, schema: JsonSchema): SettingKind<T> => ({ ...kind, schema })

export const yesOrNo = described(rules.yesOrNo, { type: 'boolean' })

export const identifier = described(rules.identifier, { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' })

export const wholeNumber = (min: number, max: number): SettingKind<number> =>
  described(rules.wholeNumber(min, max), { type: 'integer', minimum: min, maximum: max })

export const oneOf = <T extends string>(
  values: readonly T[],
  aliases: readonly (readonly [string, T])[] = [],
): SettingKind<T> => described(rules.oneOf(values, aliases), { enum: [...values, ...aliases.map(([alias]) => alias)] })

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

export const redisUri: SettingKind<string> = {
  allowed: uriForms,
  parse: (value) => (parseRedisUri(value) === undefined ? undefined : (value as string)),
  schema: { type: 'string', pattern: '^rediss?://' },
}

/** Of Redis or of MongoDB; which of them is right depends on the type. */
export const rulesUri: SettingKind<string> = {
  allowed: 'redis://… or rediss://… for type redis, mongodb://… or mongodb+srv://… for type mongo',
  parse: (value) => (isMongoUri(value) || redisUri.parse(value) !== undefined ? (value as string) : undefined),
  schema: { type: 'string', pattern: '^(rediss?|mongodb(\\+srv)?)://' },
}

export const isMongoUri = (value: unknown): boolean =>
  typeof value === 'string' && /^mongodb(\+srv)?:\/\/[^\s/?]+/.test(value)

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

export const nodes = (usualPort: number): SettingKind<readonly RedisNode[]> => ({
  allowed: `a list of ${nodeForms}; or text with commas between them`,
  parse(value) {
    const items: unknown = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
    const parsed = Array.isArray(items) ? items.map((item) => parseNode(item, usualPort)) : []
    return parsed.length > 0 && !parsed.includes(undefined) ? (parsed as RedisNode[]) : undefined
  },
  schema: listSchema({
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        properties: { host: { type: 'string' }, port: { type: ['integer', 'string'] } },
        required: ['host'],
        additionalProperties: false,
      },
    ],
  }),
})

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

export const patternList = described(edge.patternList, listSchema({ type: 'string', pattern: '^/' }))
export const trustedProxies = described(edge.trustedProxies, {
  anyOf: [{ type: 'integer', minimum: 0, maximum: 100 }, listSchema({ type: 'string' })],
})
export const headerChoice = described(edge.headerChoice, { enum: ['both', 'standard', 'legacy', false] })
export const headerName = described(edge.headerName, { type: 'string' })
export const workerCount = described(edge.workerCount, {
  anyOf: [{ type: 'integer', minimum: 1, maximum: 256 }, { const: 'auto' }],
})

/** A list, or text with commas. */
function listSchema(item: JsonSchema): JsonSchema {
  return { anyOf: [{ type: 'array', items: item }, { type: 'string' }] }
}
