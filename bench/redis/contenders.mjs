// @ts-check
/** Limiters in Redis, each with its own connection. */
import { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { createLimiter, redisStore } from '../fluxgate.mjs'
import { Broken } from '../measure.mjs'

/**
 * @typedef {import('./closed-loop.mjs').Asker} Asker
 * @typedef {{ capacity: number, windowMs: number }} Limit
 * @typedef {import('../../src/gate/limiter/create-limiter.js').LimiterOptions} Rule
 * @typedef {import('../../src/stores/redis/redis-store.js').RedisStoreOptions} StoreOptions
 * @typedef {Partial<import('rate-limiter-flexible').IRateLimiterRedisOptions>} FlexibleOptions
 */

let limiters = 0
/** Returns an unused prefix, so that contenders do not share keys. */
export const freshPrefix = () => `bench${++limiters}`

/** A long timeout, so that a busy machine does not look like an unavailable Redis. */
export const longTimeout = { timeoutMs: 10_000 }

export function ioredis(/** @type {string} */ uri, enableAutoPipelining = false) {
  const client = new Redis(uri, { enableAutoPipelining })
  // Errors are reported by the calls.
  client.on('error', () => {})
  return { client, close: () => client.disconnect() }
}

async function nodeRedis(/** @type {string} */ uri) {
  const client = createClient({ url: uri })
  client.on('error', () => {})
  await client.connect()
  return { client, close: () => client.destroy() }
}

/** @type {(name: string, rule: Rule, connection: { client: object, close: () => void }, options?: StoreOptions) => Asker} */
export function fluxGateOver(name, rule, { client, close }, options = longTimeout) {
  const store = redisStore(client, { prefix: freshPrefix(), ...options })
  const limiter = createLimiter({ ...rule, store })
  return {
    name,
    ask: (key) => limiter.consume(key),
    isAllowed: inRedis,
    async close() {
      await limiter.close()
      await store.close()
      close()
    },
  }
}

export function inRedis(/** @type {import('../../src/index.js').Decision} */ decision) {
  if (decision.degraded) throw new Broken('FluxGate made a degraded decision.')
  return decision.allowed
}

/** @type {(name: string, uri: string, rule: Rule, options?: StoreOptions) => Asker} */
export const fluxGate = (name, uri, rule, options) => fluxGateOver(name, rule, ioredis(uri), options)

/** @type {(name: string, uri: string, rule: Rule) => Promise<Asker>} */
export const fluxGateNodeRedis = async (name, uri, rule) => fluxGateOver(name, rule, await nodeRedis(uri))

/** Accepts only degraded decisions, for measurements without Redis. */
export const fluxGateAlone = (/** @type {string} */ name, /** @type {string} */ uri, /** @type {Rule} */ rule) => ({
  ...fluxGate(name, uri, rule, {}),
  isAllowed: (/** @type {import('../../src/index.js').Decision} */ { allowed, degraded }) => allowed && degraded,
})

/** @type {(limit: Limit) => { points: number, duration: number, keyPrefix: string }} */
const flexibleLimit = ({ capacity, windowMs }) => ({
  points: capacity,
  duration: windowMs / 1000,
  keyPrefix: freshPrefix(),
})

/** @type {(name: string, consume: (key: string) => Promise<unknown>, close: () => void) => Asker} */
const flexibleAsker = (name, consume, close) => ({ name, ask: consume, isAllowed: () => true, close })

/** @type {(name: string, uri: string, limit: Limit, options?: FlexibleOptions) => Asker} */
export const flexible = (name, uri, limit, options) => flexibleOver(name, limit, ioredis(uri), options)

/** @type {(name: string, uri: string, limit: Limit) => Asker} */
export const flexiblePipelined = (name, uri, limit) => flexibleOver(name, limit, ioredis(uri, true))

/** @type {(name: string, uri: string, limit: Limit) => Promise<Asker>} */
export const flexibleNodeRedis = async (name, uri, limit) =>
  flexibleOver(name, limit, await nodeRedis(uri), { useRedisPackage: true })

/** @type {(name: string, limit: Limit, connection: { client: object, close: () => void }, options?: FlexibleOptions) => Asker} */
function flexibleOver(name, limit, { client, close }, options = {}) {
  const limiter = new RateLimiterRedis({ storeClient: client, ...flexibleLimit(limit), ...options })
  return flexibleAsker(name, (key) => limiter.consume(key), close)
}

/** @type {(name: string, uri: string, limits: readonly Limit[]) => Asker} */
export function flexibleUnion(name, uri, limits) {
  const { client, close } = ioredis(uri)
  const each = limits.map((limit) => new RateLimiterRedis({ storeClient: client, ...flexibleLimit(limit) }))
  const union = new RateLimiterUnion(...each)
  return flexibleAsker(name, (key) => union.consume(key), close)
}

/** With an insurance limiter for outages of Redis. */
export function flexibleInsured(/** @type {string} */ name, /** @type {string} */ uri, /** @type {Limit} */ limit) {
  const insuranceLimiter = new RateLimiterMemory(flexibleLimit(limit))
  return flexible(name, uri, limit, { insuranceLimiter, rejectIfRedisNotReady: true })
}
