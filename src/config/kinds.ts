/** Kinds of settings that only fluxgate.yaml has. */

import * as edge from '../http/option-kinds.js'
import { redisUri } from '../redis/client/open/address-kinds.js'
import { described, listSchema, type SettingKind } from '../validation/setting-kinds.js'

/** A Redis or MongoDB URI. `resolveRules` checks that it fits the type. */
export const rulesUri: SettingKind<string> = {
  allowed: 'redis://… or rediss://… for type redis, mongodb://… or mongodb+srv://… for type mongo',
  parse: (value) => (isMongoUri(value) || redisUri.parse(value) !== undefined ? (value as string) : undefined),
  schema: { type: 'string', pattern: '^(rediss?|mongodb(\\+srv)?)://' },
}

export const isMongoUri = (value: unknown): boolean =>
  typeof value === 'string' && /^mongodb(\+srv)?:\/\/[^\s/?]+/.test(value)

export const patternList = described(edge.patternList, listSchema({ type: 'string', pattern: '^/' }))
export const trustedProxies = described(edge.trustedProxies, {
  anyOf: [{ type: 'integer', minimum: 0, maximum: 100 }, listSchema({ type: 'string' })],
})
export const headerChoice = described(edge.headerChoice, { enum: ['both', 'standard', 'legacy', false] })
export const headerName = described(edge.headerName, { type: 'string' })
export const workerCount = described(edge.workerCount, {
  anyOf: [{ type: 'integer', minimum: 1, maximum: 256 }, { const: 'auto' }],
})
