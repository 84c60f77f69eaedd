// @ts-check
/**
 * Those who limit by key. Each makes the answer it promises, the answer is looked at and kept, and what comes as a promise
 * is awaited before the next request is made, as a server does within one request.
 *
 * The loops are spelt out once per contender although they are alike: see `Contender`.
 */
import { MemoryStore } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createBareMap } from './bare-map.mjs'
import { createLimiter } from './fluxgate.mjs'

/**
 * @typedef {import('./measure.mjs').Contender} Contender
 * @typedef {{ capacity: number, windowMs: number }} Limit
 */

export const names = {
  consumeSync: 'FluxGate consumeSync',
  consume: 'FluxGate consume',
  flexible: 'rate-limiter-flexible consume',
  flexibleBare: "rate-limiter-flexible consume, keyPrefix ''",
  express: 'express-rate-limit increment',
  bareMap: 'bare Map bucket',
}

/** What each does, for the reader of the results. */
export const descriptions = [
  [names.consumeSync, 'createLimiter, token bucket, exact to the microsecond; returns the whole Decision at once'],
  [names.consume, 'the same through a promise, awaited'],
  [
    names.flexible,
    'RateLimiterMemory as it comes: a counter per key and window, a timer per key; awaited, a refusal is a rejection that is caught',
  ],
  [names.flexibleBare, 'the same, spared the building of a prefixed key'],
  [
    names.express,
    'MemoryStore.increment: a counter per key and window; awaited, the comparison with the limit is done by the caller',
  ],
  [
    names.bareMap,
    'bench/bare-map.mjs: a token bucket as written by hand, floating point, milliseconds; returns { allowed, remaining }',
  ],
]

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function fluxGateSync(keys, { capacity, windowMs }) {
  const limiter = createLimiter({ capacity, window: `${windowMs}ms` })
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

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function flexible(keys, { capacity, windowMs }) {
  const limiter = new RateLimiterMemory({ points: capacity, duration: windowMs / 1000 })
  return {
    name: names.flexible,
    close: () => forgetTimers(limiter, keys),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        try {
          last = await limiter.consume(key(keys, order, i))
          allowed++
        } catch (refusal) {
          if (refusal instanceof Error) throw refusal
          last = refusal
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
    close: () => forgetTimers(limiter, keys),
    async batch(order) {
      let allowed = 0
      let last
      for (let i = 0; i < order.length; i++) {
        try {
          last = await limiter.consume(key(keys, order, i))
          allowed++
        } catch (refusal) {
          if (refusal instanceof Error) throw refusal
          last = refusal
        }
      }
      return { allowed, last }
    },
  }
}

/** @type {(keys: readonly string[], limit: Limit) => Contender} */
export function expressStore(keys, { capacity, windowMs }) {
  const store = new MemoryStore()
  // Of the middleware's options the store reads the window alone.
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

/** The key of the i-th request. */
export function key(/** @type {readonly string[]} */ keys, /** @type {Uint32Array} */ order, /** @type {number} */ i) {
  return /** @type {string} */ (keys[/** @type {number} */ (order[i])])
}

/** It keeps a timer per key. They do not keep the process, but they would wake up in the tables to come. */
async function forgetTimers(/** @type {RateLimiterMemory} */ limiter, /** @type {readonly string[]} */ keys) {
  for (const each of keys) await limiter.delete(each)
}
