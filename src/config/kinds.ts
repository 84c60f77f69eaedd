import { redisUri } from '../redis/client/open/address-kinds.js'
import type { Kind } from '../validation/kind.js'

/** A Redis or MongoDB URI. `resolveRules` checks that it fits the type. */
export const rulesUri: Kind<string> = {
  allowed: 'redis://… or rediss://… for type redis, mongodb://… or mongodb+srv://… for type mongo',
  schema: { type: 'string', pattern: '^(rediss?|mongodb(\\+srv)?)://' },
  parse: (value) => (isMongoUri(value) || redisUri.parse(value) !== undefined ? (value as string) : undefined),
}

export const isMongoUri = (value: unknown): boolean =>
  typeof value === 'string' && /^mongodb(\+srv)?:\/\/[^\s/?]+/.test(value)
