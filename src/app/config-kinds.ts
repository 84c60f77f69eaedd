/** Value kinds of settings. Each parses a value, describes what is allowed, and has a JSON Schema for editors. */
import { durationText } from '../core/band-label.js'
import { durationForms, durationTicks } from '../rules/duration.js'
import type { Kind } from '../rules/fields.js'
import * as rules from '../rules/kinds.js'
import * as edge from './config-edge.js'
import { nodeForms, parseNode, parseRedisUri, type RedisNode, uriForms } from './open-redis-address.js'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface SettingKind<T> extends Kind<T> {
  /** May accept more than `parse`, where JSON Schema cannot express a constraint. */
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
  allowed: 'a non-empty string',
  parse: (value) => (typeof value === 'string' && value.trim() !== '' ? value : undefined),
  schema: { type: 'string', pattern: '\\S' },
}

export const share: SettingKind<number> = {
  allowed: 'a number greater than 0 and at most 1',
  parse: (value) => (typeof value === 'number' && value > 0 && value <= 1 ? value : undefined),
  schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
}

export const redisUri: SettingKind<string> = {
  allowed: uriForms,
  parse: (value) => (parseRedisUri(value) === undefined ? undefined : (value as string)),
  schema: { type: 'string', pattern: '^rediss?://' },
}

/** A Redis or MongoDB URI. `resolveRules` checks that it fits the type. */
export const rulesUri: SettingKind<string> = {
  allowed: 'redis://… or rediss://… for type redis, mongodb://… or mongodb+srv://… for type mongo',
  parse: (value) => (isMongoUri(value) || redisUri.parse(value) !== undefined ? (value as string) : undefined),
  schema: { type: 'string', pattern: '^(rediss?|mongodb(\\+srv)?)://' },
}

export const isMongoUri = (value: unknown): boolean =>
  typeof value === 'string' && /^mongodb(\+srv)?:\/\/[^\s/?]+/.test(value)

/** A key prefix, or the name of a database or collection. */
export const keyPrefix: SettingKind<string> = {
  allowed: '1 to 64 letters, digits or . _ - :',
  parse: (value) => (typeof value === 'string' && /^[A-Za-z0-9._:-]{1,64}$/.test(value) ? value : undefined),
  schema: { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,64}$' },
}

/** A token that fits into an HTTP header. Clients could never send any other token. */
export const token: SettingKind<string> = {
  allowed: '1 to 1024 printable ASCII characters without spaces',
  parse: (value) => (typeof value === 'string' && /^[\x21-\x7e]{1,1024}$/.test(value) ? value : undefined),
  schema: { type: 'string', pattern: '^[!-~]{1,1024}$' },
}

export const nodes = (defaultPort: number): SettingKind<readonly RedisNode[]> => ({
  allowed: `a list of ${nodeForms}, or a comma-separated string`,
  parse(value) {
    const items: unknown = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
    const parsed = Array.isArray(items) ? items.map((item) => parseNode(item, defaultPort)) : []
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

/** A duration, parsed to milliseconds. The bounds are in ticks. */
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

/** A list, or a comma-separated string. */
function listSchema(item: JsonSchema): JsonSchema {
  return { anyOf: [{ type: 'array', items: item }, { type: 'string' }] }
}
