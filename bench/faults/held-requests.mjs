// @ts-check
/** Held requests that leave before their time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, redisStore } from '../fluxgate.mjs'

export const held = 100
/** Time between two permits; so long that nothing is refilled during the measurement. */
const spacingMs = 60_000

/** @typedef {import('../redis/server.mjs').RedisServer} RedisServer */

/** Large enough for one more request, whose delay shows how many are ahead of it. */
const capacity = 2 * held

/** @type {readonly (readonly [name: string, limit: import('../../src/gate/limiter/create-limiter.js').LimiterOptions])[]} */
const limits = [
  ['LEAKY_BUCKET', { algorithm: 'LEAKY_BUCKET', capacity, window: `${capacity * spacingMs}ms` }],
  ['WAIT_FOR_REFILL', { onLimitExceed: 'WAIT_FOR_REFILL', capacity: 1, window: `${spacingMs}ms` }],
]

/**
 * Holds 100 requests, aborts them one after the other, oldest first, and counts the permits that are not refunded.
 *
 * @param {RedisServer} server
 * @returns {Promise<{ name: string, lost: number }[]>}
 */
export async function permitsLost(server) {
  const found = []
  for (const [name, limit] of limits) {
    found.push({ name: `memory, ${name}`, lost: await lostOf(limit) })
    const store = redisStore(server.uri, { prefix: `faults-held-${name}` })
    await store.ready(2_000)
    found.push({ name: `Redis, ${name}`, lost: await lostOf({ ...limit, store }) })
    await store.close()
  }
  return found
}

/** @param {import('../../src/gate/limiter/create-limiter.js').LimiterOptions} limit */
async function lostOf(limit) {
  const limiter = createLimiter({ ...limit, maxConcurrentWaits: held })
  await limiter.consume('a')
  const leavers = Array.from({ length: held }, () => new AbortController())
  const waits = []
  for (const { signal } of leavers) {
    waits.push(limiter.wait('a', { signal, maxWaitMs: 2 * held * spacingMs }).catch(() => {}))
    await sleep(1)
  }
  await sleep(50)
  for (const leaver of leavers) {
    leaver.abort()
    await sleep(1)
  }
  await Promise.all(waits)
  await sleep(100)
  const { delayMs, retryAfterMs } = await limiter.peek('a')
  await limiter.close()
  // One permit stays charged: the next request waits for one spacing under either limit.
  return Math.round((delayMs + (retryAfterMs ?? Number.NaN)) / spacingMs) - 1
}
