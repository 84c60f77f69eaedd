// @ts-check
/**
 * Limiters in memory. Each result is used and kept, and promises are awaited before the next request, as a server does
 * within one request.
 *
 * The loops are repeated for each contender on purpose; see `Contender`.
 */
import { MemoryStore } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createBareMap } from './contest/bare-map.mjs'
import { createFluxGate, createLimiter, memoryStore } from './fluxgate.mjs'
import { Broken } from './measure.mjs'

/**
 * @typedef {import('./measure.mjs').Contender} Contender
 * @typedef {{ capacity: number, windowMs: number }} Limit
 */

export const names = {
  consumeSync: 'FluxGate consumeSync',
  consume: 'FluxGate consume',
  check: 'FluxGate check, 10 rules, two bands',
  flexible: 'rate-limiter-flexible consume',
  flexibleBare: "rate-limiter-flexible consume, keyPrefix ''",
  express: 'express-rate-limit increment',
  bareMap: 'bare Map bucket',
}

/** Descriptions for RESULTS.md. */
export const descriptions = [
  [
    names.consumeSync,
    '`createLimiter`, token bucket, exact to the microsecond; returns the complete Decision synchronously',
  ],
  [names.consume, 'the same with a promise, awaited'],
  [names.check, '`createFluxGate` with ten rules; each request matches one rule with two bands; awaited'],
  [
    names.flexible,
    '`RateLimiterMemory` with default options: a counter per key and window, a timer per key; awaited, rejected requests are rejected promises',
  ],
  [names.flexibleBare, 'the same without building prefixed keys'],
  [
    names.express,
    '`MemoryStore.increment`: a counter per key and window; awaited, the caller compares it with the limit',
  ],
  [
    names.bareMap,
    '`bench/contest/bare-map.mjs`, a hand-written token bucket: floating point, milliseconds; returns `{ allowed, remaining }`',
  ],
]

/** @type {(keys: readonly string[], limit: Limit, maxKeys?: number) => Contender} */
export function fluxGateSync(keys, { capacity, windowMs }, maxKeys) {
  const store = maxKeys === undefined ? {} : { store: memoryStore({ maxKeys }) }
  const limiter = createLimiter({ capacity, window: `${windowMs}ms`, ...store })
  return {
    name: names.consumeSync,
    close: () => limiter.close(),
    batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        last = limiter.consumeSync(key(keys, order, i))
        if (last.allowed) allowed++
      }
      return { allowed, last }
    },
  }
}

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function fluxGateAsync(keys, { capacity, windowMs }) {
  const limiter = createLimiter({ capacity, window: `${windowMs}ms` })
  return {
    name: names.consume,
    close: () => limiter.close(),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        last = await limiter.consume(key(keys, order, i))
        if (last.allowed) allowed++
      }
      return { allowed, last }
    },
  }
}

const resources = ['users', 'orders', 'invoices', 'search', 'reports']

/**
 * One rule per resource and method: ten. Each address always requests the same rule, so that the number of buckets equals
 * the number of keys of the other contenders. The request context is created inside the loop, as in a server.
 *
 * @type {(ips: readonly string[], limit: Limit) => Promise<Contender>}
 */
export async function fluxGateCheck(ips, { capacity, windowMs }) {
  const rules = resources.flatMap((resource) =>
    ['GET', 'POST'].map((method) => ({
      id: `${resource}-${method.toLowerCase()}`,
      path: `/api/v1/${resource}/**`,
      method,
      limitScope: /** @type {const} */ ('IP'),
      bands: [
        { label: 'burst', capacity, window: `${windowMs}ms` },
        { label: 'steady', capacity: 10 * capacity, window: '1d' },
      ],
    })),
  )
  const gate = await createFluxGate({ rules: [{ id: 'api', rules }] })
  const paths = Array.from({ length: 1000 }, (_, i) => `/api/v1/${resources[(i >> 1) % resources.length]}/${7919 * i}`)
  return {
    name: names.check,
    close: () => gate.close(),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        const client = /** @type {number} */ (order[i])
        last = await gate.check({
          clientIp: /** @type {string} */ (ips[client]),
          method: client & 1 ? 'POST' : 'GET',
          path: /** @type {string} */ (paths[client % paths.length]),
        })
        if (last.allowed) allowed++
      }
      if (last?.bands.length !== 2) throw new Broken('A request was not charged to both bands of its rule.')
      return { allowed, last }
    },
  }
}

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function flexible(keys, { capacity, windowMs }) {
  const limiter = new RateLimiterMemory({ points: capacity, duration: windowMs / 1000 })
  return {
    name: names.flexible,
    close: () => deleteTimers(limiter, keys),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        try {
          last = await limiter.consume(key(keys, order, i))
          allowed++
        } catch (rejection) {
          if (rejection instanceof Error) throw rejection
          last = rejection
        }
      }
      return { allowed, last }
    },
  }
}

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function flexibleBare(keys, { capacity, windowMs }) {
  const limiter = new RateLimiterMemory({ points: capacity, duration: windowMs / 1000, keyPrefix: '' })
  return {
    name: names.flexibleBare,
    close: () => deleteTimers(limiter, keys),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        try {
          last = await limiter.consume(key(keys, order, i))
          allowed++
        } catch (rejection) {
          if (rejection instanceof Error) throw rejection
          last = rejection
        }
      }
      return { allowed, last }
    },
  }
}

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function expressStore(keys, { capacity, windowMs }) {
  const store = new MemoryStore()
  // The store only reads the window from the options of the middleware.
  store.init(/** @type {import('express-rate-limit').Options} */ ({ windowMs }))
  return {
    name: names.express,
    close: () => store.shutdown(),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        last = await store.increment(key(keys, order, i))
        if (last.totalHits <= capacity) allowed++
      }
      return { allowed, last }
    },
  }
}

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function bareMap(keys, limit) {
  const buckets = createBareMap(limit)
  return {
    name: names.bareMap,
    batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        last = buckets.consume(key(keys, order, i))
        if (last.allowed) allowed++
      }
      return { allowed, last }
    },
  }
}

/** Returns the key of the i-th request. */
export function key(/** @type {readonly string[]} */ keys, /** @type {Uint32Array} */ order, /** @type {number} */ i) {
  return /** @type {string} */ (keys[/** @type {number} */ (order[i])])
}

/** Deletes the timers that the limiter keeps per key; they would fire during later measurements. */
async function deleteTimers(/** @type {RateLimiterMemory} */ limiter, /** @type {readonly string[]} */ keys) {
  for (const each of keys) await limiter.delete(each)
}
