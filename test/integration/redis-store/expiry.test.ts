/** Every key expires exactly when its bucket is equivalent to an unused one, by the server's clock. */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { BucketGroup, BucketStore, Charge, ChargeResult } from '../../../src/core/bucket-store.js'
import { copyResult } from '../../../src/core/bucket-store.js'
import { refundsOf } from '../../../src/core/decision/rate-limiter.js'
import { algorithmNames, type Band } from '../../../src/core/rule.js'
import { type Random, seededRandom } from '../../../src/core/seeded-random.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second } from '../../../src/testing/fixtures.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'
import { type ReferenceStore, referenceStore } from '../../../src/testing/models/reference-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { redisKeyOf } from '../../fixtures/redis-key-of.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

const open = (prefix: string) => redisStore(client, { prefix, cachedRejections: false, timeoutMs: 20_000 })

async function keysOf(prefix: string, from: Redis = client): Promise<string[]> {
  const keys: string[] = []
  for await (const found of from.scanStream({ match: `${prefix}*`, count: 1_000 })) keys.push(...(found as string[]))
  return keys.sort()
}

/** Contents of Redis under a prefix, to the byte and the millisecond. */
async function image(prefix: string): Promise<unknown> {
  const keys = await keysOf(prefix)
  return Promise.all(keys.map(async (key) => [key, await client.dumpBuffer(key), await client.pexpiretime(key)]))
}

const kinds: [Band['algorithm'], Band['refill']][] = [
  ...algorithmNames.map((name): [Band['algorithm'], 'STEADY'] => [name, 'STEADY']),
  ['TOKEN_BUCKET', 'INTERVAL'],
]
const keys = ['alice', 'bob']

function randomLimit(random: Random, algorithm: Band['algorithm'], refill: Band['refill'], label: string): Band {
  const capacity = 1 + Math.floor(random() * 6)
  const refillTokens = random() < 0.5 ? capacity : 1 + Math.floor(random() * 6)
  // From ten seconds to an hour: nothing expires during a check, except windows.
  const windowTicks = Math.floor(10 * second * 360 ** random())
  return { label, algorithm, refill, capacity, refillTokens, windowTicks }
}

/** The first tick from which a bucket is equivalent to an unused one, according to the model. */
function spentFrom(model: ReferenceStore, clock: ManualClock, rule: BucketGroup, key: string, index: number): number {
  const now = Math.round(clock.now() * 1000)
  const isSpentAfter = (ticks: number): boolean => {
    clock.advance(ticks / 1000)
    const spent = model.spent(rule, key)[index] === true
    clock.advance(-ticks / 1000)
    return spent
  }
  if (isSpentAfter(0)) return now
  let [low, high] = [0, 1]
  while (!isSpentAfter(high)) [low, high] = [high, high * 2]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (isSpentAfter(middle)) high = middle
    else low = middle
  }
  return now + high
}

/** Applies a step to the store and, at the same instant, to the model. */
async function inStep(
  store: BucketStore,
  model: ReferenceStore,
  clock: ManualClock,
  act: (store: BucketStore) => Promise<ChargeResult | undefined>,
): Promise<[ChargeResult | undefined, ChargeResult | undefined]> {
  // In the same turn, and therefore in the same call and at the same instant.
  const [result, { now }] = await Promise.all([
    act(store),
    store.charge([chargeOf(group('clock', [band()]), 'x')], true),
  ])
  clock.advance(now / 1000 - clock.now())
  return [result, await act(model)]
}

describe('a key in Redis', () => {
  const seed = randomSeed()
  it.each(kinds)(
    `%s %s: expires in the exact millisecond from which it is equivalent to none (seed ${seed})`,
    async (algorithm, refill) => {
      for (let history = 0; history < 6; history++) {
        const random = seededRandom(seed + history)
        const prefix = freshPrefix()
        const clock = manualClock(0)
        const [store, model] = [open(prefix), referenceStore({ clock })]
        const rule = group('rule', [
          randomLimit(random, algorithm, refill, 'a'),
          randomLimit(random, algorithm, refill, 'b'),
        ])
        let refunds: ReturnType<typeof refundsOf> = []
        for (let step = 0; step < 40; step++) {
          const place = `seed ${seed + history}, step ${step}`
          const key = keys[Math.floor(random() * 2)] as string
          const least = Math.min(...rule.bands.map(({ capacity }) => capacity))
          const maxWaitTicks = random() < 0.4 ? Math.floor(random() * 4 * (rule.bands[0] as Band).windowTicks) : 0
          const asked: Charge[] = [chargeOf(rule, key, { permits: 1 + Math.floor(random() * least), maxWaitTicks })]
          const kind = random()
          const [actual, expected] = await inStep(store, model, clock, async (one) => {
            if (kind < 0.1) await one.reset(rule, key)
            if (kind >= 0.1 && kind < 0.3) await one.refund(refunds)
            if (kind < 0.3) return undefined
            return copyResult(asked, await one.charge(asked, kind < 0.45))
          })
          expect(actual, place).toEqual(expected)
          if (actual?.granted && kind >= 0.45) refunds = refundsOf(asked, actual)
          for (const identity of keys) {
            const from = Math.max(...rule.bands.map((_, index) => spentFrom(model, clock, rule, identity, index)))
            const expiry = await client.pexpiretime(redisKeyOf(prefix, rule, identity))
            const last = Math.ceil(from / 1000)
            // A key lives to the end of the millisecond in which it expires.
            const isLast = expiry === last && Math.floor(clock.now()) <= last
            if (from <= clock.now() * 1000 && !isLast) expect(expiry, place).toBe(-2)
            else if (expiry !== -2 || from > Date.now() * 1000) expect(expiry, place).toBe(Math.ceil(from / 1000))
          }
        }
        expect((await keysOf(prefix)).length).toBeLessThanOrEqual(2)
        // A key may expire at any time, but none has no expiry, which is -1.
        for (const key of await keysOf(prefix)) expect(await client.pttl(key)).not.toBe(-1)
      }
    },
  )

  it.each(kinds)('%s %s: expires', async (algorithm, refill) => {
    const prefix = freshPrefix()
    const store = open(prefix)
    const rule = group('rule', [band({ algorithm, refill, capacity: 3, windowTicks: 300_000 })])
    let most = 0
    for (let i = 0; i < 30; i++) {
      await store.charge([chargeOf(rule, `id${i % 7}`, { maxWaitTicks: (i % 2) * 400_000 })], false)
      most = Math.max(most, (await keysOf(prefix)).length)
    }
    expect(most).toBeGreaterThan(0)
    await eventually('no key is left', async () => (await keysOf(prefix)).length === 0)
  })

  it.each(kinds)(
    '%s %s: is not changed by a rejection or a peek, neither its value nor its expiry',
    async (algorithm, refill) => {
      const prefix = freshPrefix()
      const store = open(prefix)
      const hour = 3_600 * second
      const rule = group('rule', [
        band({ algorithm, refill, capacity: 3, refillTokens: 1, windowTicks: 366 * 24 * hour }),
      ])
      const other = group('other', [band({ capacity: 100, windowTicks: hour })])
      await store.charge([chargeOf(rule, 'a', { permits: 3 }), chargeOf(other, 'a')], false)
      const before = await image(prefix)
      for (let i = 0; i < 5; i++) {
        expect((await store.charge([chargeOf(rule, 'a')], false)).granted).toBe(false)
        expect((await store.charge([chargeOf(other, 'a'), chargeOf(rule, 'a')], false)).granted).toBe(false)
        await store.charge([chargeOf(other, 'a'), chargeOf(rule, 'a', { shadow: true })], true)
        await Promise.all([store.charge([chargeOf(rule, 'a')], false), store.charge([chargeOf(rule, 'a')], true)])
      }
      expect(await image(prefix)).toEqual(before)
    },
  )

  // A CONCURRENCY bucket changes by releases, not by refunds.
  it.each(kinds.filter(([algorithm]) => algorithm !== 'CONCURRENCY'))(
    '%s %s: is removed when everything is refunded, and not created by a refund',
    async (algorithm, refill) => {
      const prefix = freshPrefix()
      const store = open(prefix)
      const rule = group('rule', [band({ algorithm, refill, capacity: 3, windowTicks: 366 * 24 * 3_600 * second })])
      await store.refund([{ group: rule, key: 'a', permits: 1 }])
      expect(await keysOf(prefix)).toEqual([])
      await store.charge([chargeOf(rule, 'a', { permits: 2 })], false)
      await store.refund([{ group: rule, key: 'a', permits: 1 }])
      expect(await keysOf(prefix)).toEqual([redisKeyOf(prefix, rule, 'a')])
      await store.refund([{ group: rule, key: 'a', permits: 1 }])
      // Leaky buckets and token buckets have refilled a little in the meantime and are full as well.
      expect(await keysOf(prefix)).toEqual([])
    },
  )
})

describe('a server that is out of memory', () => {
  it('may evict buckets, which are then full, without an error', async () => {
    const server = await stopAfterTest(startRedis({ config: ['maxmemory-policy allkeys-lru'] }))
    const own = new Redis(server.uri)
    try {
      const store = redisStore(own, { cachedRejections: false, timeoutMs: 20_000 })
      const rule = group('rule', [band({ capacity: 10, windowTicks: 3_600 * second })])
      const ask = (from: number) =>
        Promise.all(Array.from({ length: 500 }, (_, i) => store.charge([chargeOf(rule, `id${from + i}`)], false)))
      await ask(0)
      const [, used] = /used_memory:(\d+)/.exec(String(await server.call('INFO', 'memory'))) ?? []
      await server.call('CONFIG', 'SET', 'maxmemory', Number(used) + 200_000)
      for (let from = 500; from < 10_000; from += 500)
        for (const { bands } of await ask(from)) expect(bands[0]?.remaining).toBe(9)
      const [, evicted] = /evicted_keys:(\d+)/.exec(String(await server.call('INFO', 'stats'))) ?? []
      expect(Number(evicted)).toBeGreaterThan(1_000)
      const again = (await ask(0)).map(({ bands }) => bands[0]?.remaining)
      expect(new Set(again)).toContain(9)
      expect(again.every((remaining) => remaining === 9 || remaining === 8)).toBe(true)
    } finally {
      own.disconnect()
    }
  })

  it('without eviction is a failing store: this process limits until memory is free again', async () => {
    const server = await stopAfterTest(startRedis({ config: ['maxmemory-policy noeviction'] }))
    const own = new Redis(server.uri)
    try {
      const store = redisStore(own, { timeoutMs: 20_000, failures: 1_000 })
      const limiter = createLimiter({ capacity: 3, window: '1h', store })
      expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: false, remaining: 2 })
      await server.call('CONFIG', 'SET', 'maxmemory', 1)
      expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: true, remaining: 2 })
      const rule = group('rule', [band()])
      await expect(store.charge([chargeOf(rule, 'a')], false)).rejects.toMatchObject({
        code: 'FLUXGATE_STORE_FAILED',
        message: expect.stringMatching(/^The bucket store failed to decide: .*OOM/),
      })
      // A peek needs no memory.
      expect((await store.charge([chargeOf(rule, 'a')], true)).granted).toBe(true)
      await server.call('CONFIG', 'SET', 'maxmemory', 0)
      expect(await limiter.consume('a')).toMatchObject({ allowed: true, degraded: false, remaining: 1 })
    } finally {
      own.disconnect()
    }
  })
})
