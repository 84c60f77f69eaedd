/**
 * A blocked event loop is not a failure of Redis: replies that arrived during the stall are read before a deadline
 * expires, and only time in which the loop could run counts.
 */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Decision } from '../../../src/core/decision.js'
import { createLimiter, type Limiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { stall } from '../../fixtures/stall.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { ownRedis } from '../../servers/own-redis.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const { uri } = await ownRedis()
const following = 1_000
/** Returns how many of the next requests are allowed. */
const left = 400

type Open = () => BucketStore | Promise<BucketStore>

const ownConnection: Open = () => {
  const store = redisStore(uri, { prefix: freshPrefix() })
  onTestFinished(() => store.close())
  return store
}

const stores: readonly (readonly [string, Open])[] = [
  ['a URI', ownConnection],
  [
    "the caller's ioredis client",
    () => {
      const client = new Redis(uri)
      onTestFinished(() => client.disconnect())
      return redisStore(client, { prefix: freshPrefix() })
    },
  ],
  [
    "the caller's node-redis client",
    async () => {
      const client = createClient({ url: uri })
      await client.connect()
      onTestFinished(() => client.destroy())
      return redisStore(client, { prefix: freshPrefix() })
    },
  ],
]

const countOf = (decisions: readonly Decision[]) => ({
  allowed: decisions.filter(({ allowed }) => allowed).length,
  degraded: decisions.filter(({ degraded }) => degraded).length,
})

const limiterOf = (store: BucketStore, capacity: number): Limiter => createLimiter({ capacity, window: '30d', store })

const many = (count: number, limiter: Limiter): Promise<Decision[]> =>
  Promise.all(Array.from({ length: count }, () => limiter.consume('a')))

/** Expects exact decisions after a stall: the store decides, and calls in flight were charged once. */
async function expectExactAfterwards(store: BucketStore, limiter: Limiter): Promise<void> {
  expect(store.availability?.breaker ?? 'CLOSED').toBe('CLOSED')
  const decisions: Decision[] = []
  while (decisions.length < following) decisions.push(...(await many(100, limiter)))
  expect(countOf(decisions)).toEqual({ allowed: left, degraded: 0 })
}

describe.each(stores)('a stall with a store on %s', (_, open) => {
  it.each([
    [5, 120],
    [5, 300],
    [20, 120],
    [20, 300],
    [20, 1_000],
    [200, 120],
    [200, 300],
  ])('with %i calls in flight for %i ms degrades no decision', async (calls, ms) => {
    const store = await open()
    const limiter = limiterOf(store, calls + left + 1)
    await limiter.consume('a')
    const asked = many(calls, limiter)
    // The calls have been sent, and their replies arrive while the event loop is blocked.
    await turn()
    stall(ms)
    expect(countOf(await asked)).toEqual({ allowed: calls, degraded: 0 })
    await expectExactAfterwards(store, limiter)
  })

  it('between the call and its write degrades no decision', async () => {
    const store = await open()
    const limiter = limiterOf(store, 20 + left + 1)
    await limiter.consume('a')
    const asked = many(20, limiter)
    stall(300)
    expect(countOf(await asked)).toEqual({ allowed: 20, degraded: 0 })
    await expectExactAfterwards(store, limiter)
  })
})

/** Makes decisions without a pause until `isOver`. Resolves with the number of degraded ones. */
async function callUntil(limiter: Limiter, callers: number, isOver: () => boolean): Promise<number> {
  let degraded = 0
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (!isOver()) {
        const decision = await limiter.consume('a')
        if (!decision.degraded) continue
        degraded++
        // A degraded decision needs no I/O, so without this turn the loop would never reach any.
        await turn()
      }
    }),
  )
  return degraded
}

describe('repeated stalls', () => {
  it.each([60, 150])('of %i ms, half of the time for one second, degrade no decision', async (ms) => {
    const store = await ownConnection()
    const limiter = limiterOf(store, 1_000_000_000)
    await limiter.consume('a')
    let isOver = false
    const degraded = callUntil(limiter, 20, () => isOver)
    for (let passed = 0; passed < 1_200; passed += 2 * ms) {
      await sleep(ms)
      stall(ms)
    }
    isOver = true
    expect(await degraded).toBe(0)
    expect(store.availability?.breaker).toBe('CLOSED')
  })
})

describe('the memory store', () => {
  it('is unaffected by a stall', async () => {
    const limiter = createLimiter({ capacity: 30, window: '30d' })
    const asked = many(20, limiter)
    stall(300)
    expect(countOf(await asked)).toEqual({ allowed: 20, degraded: 0 })
    expect(countOf(await many(20, limiter))).toEqual({ allowed: 10, degraded: 0 })
  })
})

describe('Redis that does not reply', () => {
  const timeoutMs = 100
  /** Node.js fires timers up to a millisecond early. */
  const timerErrorMs = 1

  async function stopped() {
    const server = await stopAfterTest(startRedis())
    const store = redisStore(server.uri)
    onTestFinished(() => store.close())
    const limiter = limiterOf(store, 10)
    expect(await limiter.consume('a')).toMatchObject({ degraded: false })
    server.pause()
    return { server, limiter }
  }

  it('runs into the deadline, and no sooner', async () => {
    const { server, limiter } = await stopped()
    const begunAt = performance.now()
    expect(await limiter.consume('a')).toMatchObject({ degraded: true })
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(timeoutMs - timerErrorMs)
    server.resume()
  })

  it('runs into the deadline if the event loop stalls repeatedly', async () => {
    const { server, limiter } = await stopped()
    let isAnswered = false
    const asked = limiter.consume('a').finally(() => {
      isAnswered = true
    })
    while (!isAnswered) {
      stall(60)
      await sleep(5)
    }
    expect(await asked).toMatchObject({ degraded: true })
    server.resume()
  })
})
