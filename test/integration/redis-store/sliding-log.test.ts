/** Long sliding logs, and limits with a thousand concurrent requests. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BucketStore, ChargeResult } from '../../../src/core/bucket-store.js'
import { algorithmNames } from '../../../src/core/rule.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { redisKeyOf } from '../../fixtures/redis-key-of.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

let server: RedisServer
let clients: Redis[]
beforeAll(async () => {
  server = await startRedis()
  clients = Array.from({ length: 4 }, () => new Redis(server.uri))
})
afterAll(async () => {
  for (const client of clients) client.disconnect()
  await server.stop()
})

describe('1000 concurrent requests of four processes', () => {
  it.each(algorithmNames)("%s: exactly 100 are allowed, on the server's clock", async (algorithm) => {
    const prefix = freshPrefix()
    const stores = clients.map((client) => redisStore(client, { prefix, timeoutMs: 20_000 }))
    const one = chargeOf(
      group('rule', [band({ algorithm, capacity: 100, windowTicks: 366 * 24 * 3_600 * second })]),
      'a',
    )
    const asked = Array.from({ length: 1_000 }, (_, i) => (stores[i % 4] as BucketStore).charge([one], false))
    expect((await Promise.all(asked)).filter(({ granted }) => granted)).toHaveLength(100)
  })
})

describe('a log of 100 000', () => {
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

  it('is exact to the microsecond, with as few commands per decision as a short one', async () => {
    const clock = manualClock(startMs)
    const prefix = freshPrefix()
    const store = redisStore(clients[0] as Redis, { prefix, clock, cachedRejections: false, timeoutMs: 30_000 })
    const rule = group('rule', [
      band({ algorithm: 'SLIDING_WINDOW_LOG', capacity: 100_000, windowTicks: 3_600 * second }),
    ])
    const commands = ['getrange', 'setrange', 'set', 'mget', 'get', 'del'] as const
    const grants: { readonly at: number; readonly permits: number }[] = []
    async function ask(permits: number): Promise<ChargeResult> {
      const result = await store.charge([chargeOf(rule, 'a', { permits })], false)
      if (result.granted) grants.push({ at: result.now, permits })
      return result
    }
    /** The remaining permits: as the store reports them, and as computed from the grants. */
    async function left(): Promise<[reported: number | undefined, counted: number]> {
      const { now, bands } = await store.charge([chargeOf(rule, 'a', { permits: 0 })], true)
      const inside = grants.filter(({ at }) => at > now - 3_600 * second)
      return [bands[0]?.remaining, 100_000 - inside.reduce((sum, { permits }) => sum + permits, 0)]
    }
    /** Five permits at a time, each in its own call at its own instant. */
    async function fill(entries: number): Promise<void> {
      const asked = []
      for (let i = 0; i < entries; i++) {
        asked.push(ask(5))
        await nextTurn()
        clock.advance(0.001)
        if (i % 500 === 499) await Promise.all(asked.splice(0))
      }
      await Promise.all(asked)
    }
    await ask(5)
    clock.advance(1)
    await fill(199)
    const short = await countCalls(server, commands, () => ask(5))
    clock.advance(1)
    await fill(19_799)
    expect(await left()).toEqual([0, 0])

    const rejected = await countCalls(server, commands, () => ask(1))
    expect(rejected).toMatchObject({ setrange: 0, set: 0, mget: 0, get: 0, del: 0 })
    // The header, and pages for a search among 20 000 entries; never all of the 313 pages.
    expect(rejected.getrange).toBeLessThanOrEqual(12)
    const { now, bands } = await ask(1)
    const { retryAfter } = bands[0] ?? expect.unreachable()
    expect(now + retryAfter).toBe((grants[0]?.at ?? 0) + 3_600 * second)
    clock.advance((retryAfter - 1) / 1000)
    expect((await ask(1)).granted).toBe(false)
    clock.advance(0.001)
    const long = await countCalls(server, commands, () => ask(1))
    expect(await left()).toEqual([4, 4])
    expect({ ...long, getrange: 0 }).toEqual({ ...short, getrange: 0 })
    expect(long.getrange).toBeLessThanOrEqual(12)

    // More than half of it expires at once; expired pages are removed.
    const key = redisKeyOf(prefix, rule, 'a')
    expect(await clients[0]?.strlen(key)).toBeLessThanOrEqual(41 + 14 * 20_001)
    clock.advance(15)
    await ask(1)
    expect(await clients[0]?.strlen(key)).toBeLessThan(41 + 14 * 10_001)
    const [reported, counted] = await left()
    expect(reported).toBe(counted)
    expect(reported).toBeGreaterThan(60_000)
  })
})
