/** `leased` over buckets in a real Redis, with a manual clock: calls to the store, held permits, and their return. */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { BucketGroup, ChargeResult } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { type LeasedOptions, leased } from '../../../src/stores/leased/leased.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { bucketStoreContract } from '../../../src/testing/bucket-store-contract.js'
import { second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { bandOf, countOf, demandOf, groupOf, sweepMs, watched } from './test-leases.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

describe('leased, for rules without leases', () =>
  bucketStoreContract(
    it,
    (clock) => leased(new RedisBuckets(connectionOf(client), { prefix: freshPrefix(), clock }), { clock }),
    { histories: 20 },
  ))

/** Refilled by ten permits per second. A process may hold 100. */
const rule = groupOf([bandOf({ capacity: 1_000, windowTicks: 100 * second })])

function bed(options: LeasedOptions & { serverClock?: Clock; from?: Redis } = {}) {
  const clock = manualClock(startMs)
  const buckets = new RedisBuckets(connectionOf(options.from ?? client), {
    prefix: freshPrefix(),
    clock: options.serverClock ?? clock,
  })
  const over = watched(buckets)
  const { calls, quiet } = over
  const store = leased(over, { clock, ...options })
  const one = (permits = 1, group: BucketGroup = rule, key = 'a') =>
    store.charge([demandOf(group, permits, { key })], false)
  /** Makes `count` decisions one after another. */
  const some = async (count: number, group: BucketGroup = rule, key = 'a'): Promise<ChargeResult[]> => {
    const results: ChargeResult[] = []
    for (let i = 0; i < count; i++) results.push(await one(1, group, key))
    return results
  }
  return {
    clock,
    buckets,
    store,
    calls,
    quiet,
    one,
    some,
    /** Permits in the bucket itself, without those held here. */
    inStore: async (group: BucketGroup = rule, key = 'a') =>
      (await buckets.charge([demandOf(group, 0, { key })], true)).bands[0]?.remaining,
    /** Makes 32 requests, so that the sweep at 25 ms leases 100 permits. The bucket keeps 868.25 of the others. */
    async makeBusy(): Promise<void> {
      await some(32)
      clock.advance(sweepMs)
      await quiet()
      expect(store.heldPermits).toBe(100)
      calls.length = 0
    },
  }
}

describe('a leased rule', () => {
  it('charges a key one by one until it has 32 requests in a second, and then leases', async () => {
    const { some, calls, clock, quiet, store } = bed()
    for (let i = 0; i < 4; i++) {
      await some(31)
      clock.advance(1_001)
    }
    expect(countOf(calls, 'charge')).toBe(calls.length)
    await some(32)
    expect(countOf(calls, 'charge')).toBe(calls.length)
    clock.advance(sweepMs)
    await quiet()
    expect(calls.at(-1)).toBe('lease 32-100')
    expect(store.heldPermits).toBe(100)
  })

  it('decides from memory, with the sum of local and stored permits as remaining', async () => {
    const { makeBusy, one, store, clock, calls } = bed()
    await makeBusy()
    clock.advance(0.5)
    const expected = {
      granted: true,
      now: startMs * 1000 + 25_500,
      bands: [{ allowed: true, delay: 0, retryAfter: 0, remaining: 967, resetAt: startMs * 1000 + 13_200_000 }],
      fromCache: true,
    }
    const result = await one()
    expect(result).toEqual(expected)
    expect(store.chargeLocally?.([demandOf(rule)])?.bands[0]?.remaining).toBe(966)
    // The result of a call remains valid; only that of `chargeLocally` is reused.
    expect(result).toEqual(expected)
    expect(calls).toEqual([])
  })

  it('decides locally only what held permits cover', async () => {
    const { makeBusy, store } = bed()
    expect(store.chargeLocally?.([demandOf(rule)])).toBeUndefined()
    await makeBusy()
    const other = groupOf([bandOf()], { isLeased: false })
    for (const demands of [
      [demandOf(rule, 101)],
      [demandOf(rule, 1, { maxWaitTicks: second })],
      [demandOf(rule, 1, { shadow: true })],
      [demandOf(rule, 1, { key: 'b' })],
      [demandOf(other)],
      [demandOf(rule), demandOf(other)],
    ])
      expect(store.chargeLocally?.(demands)).toBeUndefined()
    expect(store.heldPermits).toBe(100)
  })

  it('makes fewer calls the more requests there are, and holds no more than its share', async () => {
    const { makeBusy, one, store, calls } = bed()
    await makeBusy()
    let most = 0
    for (let i = 0; i < 850; i++) {
      expect((await one()).granted).toBe(true)
      most = Math.max(most, store.heldPermits)
    }
    expect(most).toBeLessThanOrEqual(100)
    expect(countOf(calls, 'lease')).toBeLessThan(15)
    expect(countOf(calls, 'charge')).toBe(0)
  })

  it('admits exactly the capacity and then returns the time of the next refill', async () => {
    const { makeBusy, one } = bed()
    await makeBusy()
    let admitted = 32
    let result = await one()
    for (; result.granted; result = await one()) admitted += 1
    expect(admitted).toBe(1_000)
    expect(result.bands[0]).toMatchObject({ allowed: false, remaining: 0, retryAfter: 75_000 })
  })

  it('admits exactly the capacity to many requests of one turn, in order', async () => {
    const { makeBusy, one, store, calls } = bed()
    await makeBusy()
    const results = await Promise.all(Array.from({ length: 1_500 }, () => one()))
    const admitted = 968 - store.heldPermits
    expect(results.map(({ granted }) => granted)).toEqual(results.map((_, i) => i < admitted))
    expect(countOf(calls, 'lease')).toBe(1)
  })

  it('lets concurrent requests share one lease', async () => {
    const { makeBusy, one, calls } = bed()
    await makeBusy()
    const results = await Promise.all(Array.from({ length: 170 }, () => one()))
    expect(results.every(({ granted }) => granted)).toBe(true)
    expect(calls).toEqual(['settle 76', 'lease 32-76'])
  })

  it('charges the store for more than may be held, and uses held permits toward it', async () => {
    const { makeBusy, one, calls } = bed()
    await makeBusy()
    expect((await one(968)).granted).toBe(true)
    expect(calls).toEqual(['settle -100', 'charge'])
    expect((await one(1)).granted).toBe(false)
  })

  it('charges one by one if a share of its capacity is less than 32 requests', async () => {
    const { some, clock, calls } = bed()
    const small = groupOf([bandOf({ capacity: 310, windowTicks: 1_000 * second })])
    for (let i = 0; i < 10; i++) {
      expect((await some(31, small)).every(({ granted }) => granted)).toBe(true)
      clock.advance(sweepMs)
    }
    expect((await some(1, small))[0]?.granted).toBe(false)
    expect(new Set(calls)).toEqual(new Set(['charge']))
  })

  it('charges one by one if a request would wait for a refill', async () => {
    const { store, makeBusy, calls } = bed()
    await makeBusy()
    await store.charge([demandOf(rule, 1, { maxWaitTicks: second })], false)
    expect(calls).toEqual(['settle -100', 'charge'])
  })

  it('leases the next batch before the last one is used up', async () => {
    const { makeBusy, one, store, calls } = bed()
    await makeBusy()
    const results: Promise<ChargeResult>[] = []
    while (calls.length === 0) results.push(one())
    expect(store.heldPermits).toBeGreaterThan(0)
    expect(calls.at(-1)).toMatch(/^lease 32-/)
    await Promise.all(results)
  })
})

describe('unused permits', () => {
  it('are returned when idle', async () => {
    const { makeBusy, clock, store, calls, quiet, inStore } = bed()
    await makeBusy()
    clock.advance(224)
    expect(store.heldPermits).toBe(100)
    clock.advance(1)
    expect(store.heldPermits).toBe(0)
    expect(calls).toEqual(['settle -100'])
    await quiet()
    // 2.5 permits were refilled since the start.
    expect(await inStore()).toBe(970)
  })

  it('are returned before the lease expires if the key is no longer busy', async () => {
    const { makeBusy, one, clock, store, calls, quiet, inStore } = bed()
    await makeBusy()
    for (let i = 0; i < 19; i++) {
      clock.advance(100)
      await one()
    }
    expect(store.heldPermits).toBe(0)
    expect(calls).toEqual(['settle 18,-82', 'charge'])
    await quiet()
    // 19 permits were refilled.
    expect(await inStore()).toBe(1_000 - 32 - 19 + 19)
  })

  it('are not spent after the lease has expired, even if the process was suspended and could not return them', async () => {
    const local = { now: () => local.ms, ms: startMs, wake: () => {} }
    const schedule = (_: number, wake: () => void) => {
      local.wake = wake
      return () => {}
    }
    const server = manualClock(startMs)
    const clock: Clock = { now: () => local.now(), schedule }
    const { some, one, calls, quiet, inStore } = bed({ clock, serverClock: server })
    await some(32)
    local.wake()
    await quiet()
    calls.length = 0
    for (const at of [1_990, 1_995.999]) {
      local.ms = startMs + at
      await one()
    }
    expect(calls).toEqual([])
    server.advance(1_996)
    local.ms = startMs + 1_996
    await one()
    expect(calls).toEqual(['settle 2,-98', 'charge'])
    expect(await inStore()).toBe(984)
  })

  it('of a fixed window are not returned after the window, and the next one is leased again', async () => {
    const windows = groupOf([bandOf({ algorithm: 'FIXED_WINDOW', capacity: 1_000, windowTicks: second })])
    const { some, one, clock, quiet, calls, store, inStore } = bed()
    await some(32, windows)
    clock.advance(sweepMs)
    await quiet()
    expect(calls.at(-1)).toBe('lease 32-100')
    calls.length = 0
    for (let i = 0; i < 48; i++) {
      clock.advance(20)
      await one(1, windows)
    }
    expect(calls).toEqual([])
    expect(store.heldPermits).toBe(52)
    clock.advance(20)
    await quiet()
    expect(calls).toEqual(['lease 32-50'])
    expect(store.heldPermits).toBe(50)
    expect(await inStore(windows)).toBe(950)
  })

  it('are returned when the rule is retired or reset, or the store is closed', async () => {
    const retired = bed()
    await retired.makeBusy()
    retired.store.retire?.(rule)
    expect(await retired.inStore()).toBe(968)
    const reset = bed()
    await reset.makeBusy()
    await reset.store.reset(rule, 'a')
    expect(await reset.inStore()).toBe(1_000)
    expect(reset.store.heldPermits).toBe(0)
    const closed = bed()
    await closed.makeBusy()
    const coming = closed.one(1, rule, 'b')
    await closed.store.close()
    expect(await closed.inStore()).toBe(968)
    expect((await coming).granted).toBe(true)
    expect(closed.store.heldPermits).toBe(0)
  })

  it('are returned if they arrive after the rule was retired, and requests that waited for them are served', async () => {
    const { makeBusy, one, store, quiet, inStore } = bed()
    await makeBusy()
    const waiting = Array.from({ length: 101 }, () => one())
    store.retire?.(rule)
    expect((await Promise.all(waiting)).every(({ granted }) => granted)).toBe(true)
    await quiet()
    expect(await inStore()).toBe(968 - 101)
  })

  it('of a lease in flight have no effect on a reset', async () => {
    const { makeBusy, one, store, inStore } = bed()
    await makeBusy()
    const waiting = Array.from({ length: 101 }, () => one())
    await store.reset(rule, 'a')
    expect((await Promise.all(waiting)).every(({ granted }) => granted)).toBe(true)
    expect(store.heldPermits).toBe(0)
    await one()
    expect(await inStore()).toBe(999)
  })

  it('make room for a refund of spent permits', async () => {
    const { makeBusy, some, store, calls, inStore } = bed()
    await makeBusy()
    await some(3)
    await store.refund([{ group: rule, key: 'a', permits: 3 }])
    expect(calls).toEqual(['settle 3'])
    expect(await inStore()).toBe(871)
    expect(store.heldPermits).toBe(97)
  })
})

describe('several rules in one decision', () => {
  const other = groupOf([bandOf({ capacity: 3 })], { ruleId: 'exact', isLeased: false })
  const shadow = groupOf([bandOf({ capacity: 50 })], { ruleId: 'shadow' })

  it('are charged all or nothing', async () => {
    const { makeBusy, store, inStore } = bed()
    await makeBusy()
    const demands = [demandOf(rule), demandOf(other), demandOf(shadow, 1, { shadow: true })]
    const granted = []
    for (let i = 0; i < 6; i++) granted.push((await store.charge(demands, false)).granted)
    expect(granted).toEqual([true, true, true, false, false, false])
    const rejected = await store.charge(demands, false)
    expect(rejected.bands.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 965],
      [false, 0],
      [true, 47],
    ])
    expect(store.heldPermits).toBe(97)
    expect([await inStore(), await inStore(other), await inStore(shadow)]).toEqual([868, 0, 47])
  })

  it('get their permits back if the store fails', async () => {
    const own = new Redis(sharedRedis().uri)
    const { store, makeBusy } = bed({ from: own })
    await makeBusy()
    own.disconnect()
    await expect(store.charge([demandOf(rule), demandOf(other)], false)).rejects.toThrow()
    expect(store.heldPermits).toBe(100)
  })

  it('are decided from memory if all are leased', async () => {
    const { store, clock, quiet, calls } = bed()
    const second = groupOf([bandOf({ capacity: 500 })], { ruleId: 'second' })
    const demands = [demandOf(rule), demandOf(second)]
    for (let i = 0; i < 32; i++) expect((await store.charge(demands, false)).granted).toBe(true)
    clock.advance(sweepMs)
    await quiet()
    expect(calls.slice(32)).toEqual(['lease 32-100', 'lease 32-50'])
    expect(await store.charge(demands, false)).toMatchObject({ granted: true, fromCache: true })
    expect(calls.length).toBe(34)
  })
})

describe('a store that is down', () => {
  it('does not affect decisions until the held permits are spent; then they reject with its errors', async () => {
    const own = new Redis(sharedRedis().uri)
    const { store, makeBusy, one, clock } = bed({ from: own })
    await makeBusy()
    own.disconnect()
    for (let i = 0; i < 100; i++) expect((await one()).granted).toBe(true)
    await expect(one()).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
    clock.advance(2_000)
    await expect(one()).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
    await store.close()
  })
})

describe('a peek', () => {
  it('counts permits held here as available', async () => {
    const { store, makeBusy } = bed()
    await makeBusy()
    const peek = async (permits: number) => (await store.charge([demandOf(rule, permits)], true)).bands[0]
    expect((await peek(0))?.remaining).toBe(968)
    expect((await peek(1))?.remaining).toBe(967)
    expect((await peek(968))?.remaining).toBe(0)
    expect(await peek(969)).toMatchObject({ allowed: false, remaining: 968, retryAfter: 75_000 })
    expect((await peek(1_001))?.retryAfter).toBe(Number.POSITIVE_INFINITY)
    expect(store.heldPermits).toBe(100)
  })
})

describe('many keys', () => {
  it('are leased up to the limit of leased keys, and removed when idle', async () => {
    const { some, store, clock, quiet, calls } = bed({ maxPools: 2 })
    for (const key of ['a', 'b', 'c']) await some(33, rule, key)
    clock.advance(sweepMs)
    await quiet()
    expect(countOf(calls, 'lease')).toBe(2)
    expect(store.heldPermits).toBe(200)
    clock.advance(1_100)
    await quiet()
    expect(store.heldPermits).toBe(0)
    calls.length = 0
    await some(33, rule, 'c')
    clock.advance(sweepMs)
    await quiet()
    expect(countOf(calls, 'lease')).toBe(1)
  })
})
