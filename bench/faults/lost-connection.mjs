// @ts-check
/** Callers that make decisions continuously while the server closes their connection. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { createLimiter, redisStore } from '../fluxgate.mjs'

export const callers = 20

/** @typedef {import('../redis/server.mjs').RedisServer} RedisServer */

const kill = (/** @type {RedisServer} */ server) => server.call('CLIENT', 'KILL', 'TYPE', 'normal')

/** @param {RedisServer} server */
async function startCallers(server) {
  const store = redisStore(server.uri, { prefix: 'faults-lost', cachedRejections: false })
  await store.ready(2_000)
  const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity: 1_000_000_000, window: '30d', store })
  while ((await limiter.consume('a')).degraded) await sleep(20)
  const tally = { made: 0, degraded: 0, exactInARow: 0, lastDegradedAt: 0 }
  let isOver = false
  const calling = Promise.all(
    Array.from({ length: callers }, async () => {
      while (!isOver) {
        const { degraded } = await limiter.consume('a')
        tally.made++
        tally.exactInARow++
        if (!degraded) continue
        tally.degraded++
        tally.exactInARow = 0
        tally.lastDegradedAt = performance.now()
        // A degraded decision needs no I/O. Without this turn, the event loop would never process any.
        await turn()
      }
    }),
  )
  return {
    tally,
    async stop() {
      isOver = true
      await calling
      await store.close()
    },
  }
}

/**
 * Measures one lost connection.
 *
 * @param {RedisServer} server
 * @returns {Promise<{ degraded: number, exactAfterMs: number }>} milliseconds until the last degraded decision
 */
export async function oneCut(server) {
  const { tally, stop } = await startCallers(server)
  await sleep(100)
  const { degraded: before } = tally
  const cutAt = performance.now()
  await kill(server)
  tally.exactInARow = 0
  while (tally.exactInARow < 50 * callers) await sleep(20)
  await stop()
  const degraded = tally.degraded - before
  return { degraded, exactAfterMs: degraded === 0 ? 0 : tally.lastDegradedAt - cutAt }
}

/**
 * Measures a lost connection every 200 ms.
 *
 * @param {RedisServer} server
 * @param {number} seconds
 * @returns {Promise<number>} percent of all decisions that were degraded
 */
export async function repeatedCuts(server, seconds) {
  const { tally, stop } = await startCallers(server)
  const endsAt = performance.now() + seconds * 1_000
  while (performance.now() < endsAt) {
    await sleep(200)
    await kill(server)
  }
  await stop()
  return (100 * tally.degraded) / tally.made
}
