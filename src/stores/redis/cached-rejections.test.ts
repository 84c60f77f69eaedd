import { describe, expect, it } from 'vitest'
import { type BucketGroup, type ChargeResult, withBands } from '../../core/bucket-store.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { band, chargeOf, group, second } from '../../testing/fixtures.js'
import { manualClock } from '../../testing/manual-clock.js'
import { CachedRejections } from './cached-rejections.js'
import { RedisBuckets } from './redis-buckets.js'

const ruleOf = (capacity = 2): BucketGroup => group('rule', [band({ capacity, windowTicks: 60 * second })])

const rejection = (now: number): ChargeResult => ({
  granted: false,
  now,
  bands: [{ allowed: false, delay: 0, retryAfter: 30 * second, remaining: 0, resetAt: now + 60 * second }],
})

/** A store whose clock is at 5 s when that of this process is at 0, and whose bucket is empty. */
function emptyAt(cache: CachedRejections, rule: BucketGroup, key: string): void {
  const now = 5 * second
  cache.record([chargeOf(rule, key)], rejection(now), [[0, 0, now, 60 * second]], 0)
}

describe('CachedRejections', () => {
  it("counts time from when the store was asked, on the store's clock", () => {
    const clock = manualClock(0)
    const cache = new CachedRejections({ clock })
    const rule = ruleOf()
    emptyAt(cache, rule, 'a')
    clock.advance(400)
    expect(cache.find([chargeOf(rule, 'a')], false)).toEqual({
      granted: false,
      now: 5.4 * second,
      bands: [{ allowed: false, delay: 0, retryAfter: 29.6 * second, remaining: 0, resetAt: 65 * second }],
      fromCache: true,
    })
    expect(cache.find([chargeOf(rule, 'b')], false)).toBeUndefined()
    expect(cache.find([chargeOf(ruleOf(), 'a')], false)).toBeUndefined()
  })

  it('caches long keys separately until their buckets change', () => {
    const cache = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    const [long, other] = [`${'x'.repeat(200)}a`, `${'x'.repeat(200)}b`]
    emptyAt(cache, rule, long)
    expect(cache.find([chargeOf(rule, long)], false)).toBeDefined()
    expect(cache.find([chargeOf(rule, other)], false)).toBeUndefined()
    cache.bucketsChanged([chargeOf(rule, long)])
    expect(cache.find([chargeOf(rule, long)], false)).toBeUndefined()
  })

  it('always rejects more permits than the capacity', () => {
    const cache = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    emptyAt(cache, rule, 'a')
    expect(cache.find([chargeOf(rule, 'a', { permits: 3 })], false)?.bands[0]?.retryAfter).toBe(
      Number.POSITIVE_INFINITY,
    )
  })

  it('uses an entry for less than a second, and drops entries from the future', () => {
    const clock = manualClock(0)
    const cache = new CachedRejections({ clock })
    const rule = ruleOf()
    emptyAt(cache, rule, 'a')
    clock.advance(999.999)
    expect(cache.find([chargeOf(rule, 'a')], false)).toBeDefined()
    clock.advance(0.001)
    expect(cache.find([chargeOf(rule, 'a')], false)).toBeUndefined()
    emptyAt(cache, rule, 'a')
    clock.advance(-1_000.001)
    cache.find([chargeOf(rule, 'a')], true)
    clock.advance(0.001)
    expect(cache.find([chargeOf(rule, 'a')], false)).toBeUndefined()
  })

  it('uses an entry for 100 ms while one call refreshes it', () => {
    const clock = manualClock(0)
    const cache = new CachedRejections({ clock })
    const rule = ruleOf()
    const isCached = () => cache.find([chargeOf(rule, 'a')], false) !== undefined
    emptyAt(cache, rule, 'a')
    clock.advance(1_000)
    expect([isCached(), isCached()]).toEqual([false, true])
    clock.advance(99.999)
    expect(isCached()).toBe(true)
    clock.advance(0.001)
    expect([isCached(), isCached()]).toEqual([false, true])
    cache.bucketsChanged([chargeOf(rule, 'a')])
    expect(isCached()).toBe(false)
  })

  it('evicts the oldest entry beyond maxBuckets', () => {
    const cache = new CachedRejections({ clock: manualClock(0), maxBuckets: 3 })
    const rule = ruleOf()
    for (let i = 0; i < 10_000; i++) emptyAt(cache, rule, `id${i}`)
    expect(cache.size).toBe(3)
    const isCached = [9_996, 9_997, 9_999].map((i) => cache.find([chargeOf(rule, `id${i}`)], false) !== undefined)
    expect(isCached).toEqual([false, true, true])
    for (let i = 0; i < 10; i++) emptyAt(cache, rule, 'id9997')
    expect(cache.size).toBe(3)
  })

  it('does not cache a bucket whose state is unknown', () => {
    const cache = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    cache.record([chargeOf(rule, 'a')], rejection(0), [null], 0)
    expect(cache.size).toBe(0)
  })

  it('removes buckets that were charged', () => {
    const cache = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    emptyAt(cache, rule, 'a')
    cache.bucketsChanged([chargeOf(rule, 'b')])
    expect(cache.size).toBe(1)
    cache.bucketsChanged([chargeOf(rule, 'a')])
    expect(cache.size).toBe(0)
  })

  it('knows that the bands of a single call use the buckets of the rule', () => {
    const cache = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    const ofCall = withBands(rule, [band({ capacity: 1 })])
    emptyAt(cache, rule, 'a')
    expect(cache.find([chargeOf(rule, 'a')], false)).toMatchObject({ granted: false })
    expect(cache.find([chargeOf(ofCall, 'a')], false)).toBeUndefined()
    cache.bucketsChanged([chargeOf(ofCall, 'a')])
    expect(cache.find([chargeOf(rule, 'a')], false)).toBeUndefined()
  })
})

describe('cached rejections of RedisBuckets', () => {
  it('are removed before a refund or reset is sent, and again after it has failed', async () => {
    const cache = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    const sizes: number[] = []
    const connection: RedisConnection = {
      isCluster: false,
      async call() {
        sizes.push(cache.size)
        emptyAt(cache, rule, 'a')
        throw new Error('lost')
      },
      subscribe: async () => expect.unreachable(),
      close: async () => {},
    }
    const buckets = new RedisBuckets(connection, { rejectionCache: cache })
    emptyAt(cache, rule, 'a')
    await expect(buckets.refund([{ group: rule, key: 'a', permits: 1 }])).rejects.toThrow('lost')
    emptyAt(cache, rule, 'a')
    await expect(buckets.reset(rule, 'a')).rejects.toThrow('lost')
    expect([...sizes, cache.size]).toEqual([0, 0, 0])
  })
})
