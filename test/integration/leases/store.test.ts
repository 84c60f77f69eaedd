/** `leased` over buckets in a real Redis, with a manual clock: calls to the store, held permits, and their return. */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { BucketGroup, ChargeResult, LeasingStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { type LeasedOptions, leased } from '../../../src/stores/leased/leased.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { bucketStoreContract } from '../../../src/testing/bucket-store-contract.js'
import { second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { bandOf, demandOf, groupOf } from './test-leases.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

describe('leased, for rules without leases', () =>
  bucketStoreContract(
    it,
    (clock) => leased(new RedisBuckets(connectionOf(client), { prefix: freshPrefix(), clock }), { clock }),
    { histories: 20 },
  ))

/** Records the calls to the store. */
function watched(store: LeasingStore, calls: string[]): LeasingStore {
  return {
    charge: (demands, peek) => {
      calls.push(peek ? 'peek' : 'charge')
      return store.charge(demands, peek)
    },
    leasing: {
      lease: (request) => {
        calls.push(`lease ${request.permits}-${request.wanted}`)
        return store.leasing.lease(request)
      },
      settle: (settlements) => {
        calls.push(`settle ${settlements.map(({ permits }) => permits)}`)
        return store.leasing.settle(settlements)
      },
    },
    refund: (refunds) => store.refund(refunds),
    reset: (group, key) => store.reset(group, key),
    close: () => store.close(),
  }
}

const rule = groupOf([bandOf({ capacity: 1_000, windowTicks: 100 * second })])

function bed(options: LeasedOptions & { serverClock?: Clock; from?: Redis } = {}) {
  const clock = manualClock(startMs)
  const buckets = new RedisBuckets(connectionOf(options.from ?? client), {
    prefix: freshPrefix(),
    clock: options.serverClock ?? clock,
  })
  const calls: string[] = []
  const store = leased(watched(buckets, calls), { clock, ...options })
  const one = (permits = 1, group: BucketGroup = rule, key = 'a') =>
    store.charge([demandOf(group, permits, { key })], false)
  return {
    clock,
    buckets,
    store,
    calls,
    one,
    /** Permits in the bucket itself, without those held here. */
    inStore: async (group: BucketGroup = rule, key = 'a') =>
      (await buckets.charge([demandOf(group, 0, { key })], true)).bands[0]?.remaining,
    /** Makes `count` decisions one after another. */
    async some(count: number): Promise<ChargeResult[]> {
      const results: ChargeResult[] = []
      for (let i = 0; i < count; i++) results.push(await one())
      return results
    },
  }
}

describe('a leased rule', () => {
  it('charges the first request, and leases for requests that follow closely', async () => {
    const { some, calls, store } = bed()
    await some(3)
    expect(calls).toEqual(['charge', 'lease 1-3'])
    expect(store.heldPermits).toBe(1)
    await some(2)
    expect(calls.slice(2)).toEqual(['settle 3', 'lease 1-4'])
    expect(store.heldPermits).toBe(3)
  })

  it('decides from memory, with the sum of local and stored permits as remaining', async () => {
    const { some, clock } = bed()
    await some(2)
    clock.advance(0.5)
    const [result] = await some(1)
    expect(result).toEqual({
      granted: true,
      now: startMs * 1000 + 500,
      bands: [{ allowed: true, delay: 0, retryAfter: 0, remaining: 997, resetAt: startMs * 1000 + 400_000 }],
      fromCache: true,
    })
  })

  it('makes fewer calls the more requests there are, and holds no more than its share', async () => {
    const { one, store, calls } = bed()
    let most = 0
    for (let i = 0; i < 990; i++) {
      expect((await one()).granted).toBe(true)
      most = Math.max(most, store.heldPermits)
    }
    expect(most).toBeLessThanOrEqual(100)
    expect(most).toBeGreaterThan(50)
    expect(calls.filter((call) => call.startsWith('lease')).length).toBeLessThan(30)
    expect(calls.filter((call) => call === 'charge')).toEqual(['charge'])
  })

  it('admits exactly the capacity and then returns the time of the next refill', async () => {
    const { one } = bed()
    let admitted = 0
    let result = await one()
    for (; result.granted; result = await one()) admitted += 1
    expect(admitted).toBe(1_000)
    expect(result.bands[0]).toMatchObject({ allowed: false, remaining: 0, retryAfter: 100_000 })
  })

  it('admits exactly the capacity to many requests of one turn, in order and in one call', async () => {
    const { one, store, calls } = bed()
    const results = await Promise.all(Array.from({ length: 1_500 }, () => one()))
    const admitted = 1_000 - store.heldPermits
    expect(results.map(({ granted }) => granted)).toEqual(results.map((_, i) => i < admitted))
    expect(calls.filter((call) => call.startsWith('lease')).length).toBe(1)
  })

  it('lets concurrent requests share one lease', async () => {
    const { one, some, calls } = bed()
    await some(3)
    const results = await Promise.all([one(2), one(1), one(1)])
    expect(results.every(({ granted }) => granted)).toBe(true)
    expect(calls.slice(2)).toEqual(['settle 2', 'lease 1-3'])
  })

  it('charges the store for more than may be held, and uses held permits toward it', async () => {
    const { one, some, calls, store } = bed()
    await some(5)
    expect(store.heldPermits).toBe(3)
    expect((await one(995)).granted).toBe(true)
    expect(calls.slice(4)).toEqual(['settle 1,-3', 'charge'])
    expect((await one(1)).granted).toBe(false)
  })

  it('charges one by one if a share of its capacity is no more than a request', async () => {
    const { one, calls } = bed()
    const small = groupOf([bandOf({ capacity: 10 })])
    for (let i = 0; i < 10; i++) expect((await one(1, small)).granted).toBe(true)
    expect((await one(1, small)).granted).toBe(false)
    expect(new Set(calls)).toEqual(new Set(['charge']))
  })

  it('charges one by one if a request would wait for a refill', async () => {
    const { store, some, calls } = bed()
    await some(3)
    await store.charge([demandOf(rule, 1, { maxWaitTicks: second })], false)
    expect(calls.slice(2)).toEqual(['settle 2,-1', 'charge'])
  })

  it('leases the next batch before the last one is used up', async () => {
    const { one, store, calls } = bed()
    for (let i = 0; i < 40; i++) await one()
    const before = calls.length
    const results: Promise<ChargeResult>[] = []
    while (calls.length === before) results.push(one())
    expect(store.heldPermits).toBeGreaterThan(0)
    expect(calls.at(-1)).toMatch(/^lease 1-/)
    await Promise.all(results)
  })
})

describe('unused permits', () => {
  it('are returned when idle, and the pool is removed', async () => {
    const { some, clock, store, inStore } = bed()
    await some(5)
    expect(store.heldPermits).toBe(3)
    clock.advance(200)
    expect(store.heldPermits).toBe(3)
    clock.advance(100)
    expect(store.heldPermits).toBe(0)
    // Three permits were refilled in the meantime, in addition to the held ones.
    expect(await inStore()).toBe(998)
  })

  it('are returned before the lease expires, even if requests still arrive occasionally', async () => {
    const { one, some, clock, store, inStore } = bed()
    await some(6)
    for (let i = 0; i < 18; i++) {
      clock.advance(100)
      if (i === 10) await one()
    }
    expect(store.heldPermits).toBe(0)
    // 18 permits were refilled, except in the capacity that was held until the return.
    expect(await inStore()).toBeGreaterThan(994)
  })

  it('are not spent after the lease has expired, even if the process was suspended and could not return them', async () => {
    const local = { now: () => local.ms, ms: startMs }
    const clock: Clock = { now: () => local.now(), schedule: () => () => {} }
    const server = manualClock(startMs)
    const { some, one, calls, inStore } = bed({ clock, serverClock: server })
    await some(5)
    const before = calls.length
    for (const at of [1_990, 1_995.999]) {
      local.ms = startMs + at
      await one()
    }
    expect(calls.length).toBe(before)
    server.advance(1_996)
    local.ms = startMs + 1_996
    await one()
    expect(calls.slice(before)).toEqual(['settle 3,-1', 'lease 1-5'])
    expect(await inStore()).toBe(992)
  })

  it('are returned when the rule is retired or reset, or the store is closed', async () => {
    const retired = bed()
    await retired.some(6)
    retired.store.retire?.(rule)
    expect(await retired.inStore()).toBe(994)
    const reset = bed()
    await reset.some(6)
    await reset.store.reset(rule, 'a')
    expect(await reset.inStore()).toBe(1_000)
    expect(reset.store.heldPermits).toBe(0)
    const closed = bed()
    await closed.some(6)
    const coming = closed.one(1, rule, 'b')
    await closed.store.close()
    expect(await closed.inStore()).toBe(994)
    expect((await coming).granted).toBe(true)
    expect(closed.store.heldPermits).toBe(0)
  })

  it('are returned if they arrive after the rule was retired, and requests that waited for them are served', async () => {
    const { one, some, store, inStore } = bed()
    await some(4)
    const waiting = one()
    store.retire?.(rule)
    expect((await waiting).granted).toBe(true)
    expect(await inStore()).toBe(995)
  })

  it('of a lease in flight have no effect on a reset', async () => {
    const { one, some, store, inStore } = bed()
    await some(4)
    const waiting = one()
    await store.reset(rule, 'a')
    expect((await waiting).granted).toBe(true)
    expect(store.heldPermits).toBe(0)
    await one()
    expect(await inStore()).toBeGreaterThanOrEqual(994)
  })

  it('make room for a refund of spent permits', async () => {
    const { some, store, inStore } = bed()
    await some(3)
    await store.refund([{ group: rule, key: 'a', permits: 3 }])
    expect(await inStore()).toBe(999)
    expect(store.heldPermits).toBe(1)
  })
})

describe('several rules in one decision', () => {
  const other = groupOf([bandOf({ capacity: 3 })], { ruleId: 'exact', isLeased: false })
  const shadow = groupOf([bandOf({ capacity: 50 })], { ruleId: 'shadow' })

  it('are charged all or nothing', async () => {
    const { store, inStore, clock } = bed()
    const demands = [demandOf(rule), demandOf(other), demandOf(shadow, 1, { shadow: true })]
    const granted = []
    for (let i = 0; i < 6; i++) granted.push((await store.charge(demands, false)).granted)
    expect(granted).toEqual([true, true, true, false, false, false])
    const rejected = await store.charge(demands, false)
    expect(rejected.bands.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 997],
      [false, 0],
      [true, 47],
    ])
    clock.advance(300)
    expect(store.heldPermits).toBe(0)
    expect([await inStore(), await inStore(other), await inStore(shadow)]).toEqual([1_000, 0, 48])
  })

  it('get their permits back if the store fails', async () => {
    const own = new Redis(sharedRedis().uri)
    const { store, some } = bed({ from: own })
    await some(5)
    expect(store.heldPermits).toBe(3)
    own.disconnect()
    await expect(store.charge([demandOf(rule), demandOf(other)], false)).rejects.toThrow()
    expect(store.heldPermits).toBe(3)
  })

  it('are decided from memory if all are leased', async () => {
    const { store, calls } = bed()
    const second = groupOf([bandOf({ capacity: 500 })], { ruleId: 'second' })
    const demands = [demandOf(rule), demandOf(second)]
    for (let i = 0; i < 20; i++) expect((await store.charge(demands, false)).granted).toBe(true)
    const before = calls.length
    expect(await store.charge(demands, false)).toMatchObject({ granted: true, fromCache: true })
    expect(calls.length).toBe(before)
  })
})

describe('a store that is down', () => {
  it('does not affect decisions until the held permits are spent; then they reject with its errors', async () => {
    const own = new Redis(sharedRedis().uri)
    const { store, some, one, clock } = bed({ from: own })
    await some(9)
    const held = store.heldPermits
    expect(held).toBeGreaterThan(0)
    own.disconnect()
    for (let i = 0; i < held; i++) expect((await one()).granted).toBe(true)
    await expect(one()).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
    clock.advance(2_000)
    await expect(one()).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
    await store.close()
  })
})

describe('a peek', () => {
  it('counts permits held here as available', async () => {
    const { store, some } = bed()
    await some(5)
    expect(store.heldPermits).toBe(3)
    const peek = async (permits: number) => (await store.charge([demandOf(rule, permits)], true)).bands[0]
    expect((await peek(0))?.remaining).toBe(995)
    expect((await peek(1))?.remaining).toBe(994)
    expect((await peek(995))?.remaining).toBe(0)
    expect(await peek(996)).toMatchObject({ allowed: false, remaining: 995, retryAfter: 100_000 })
    expect((await peek(1_001))?.retryAfter).toBe(Number.POSITIVE_INFINITY)
    expect(store.heldPermits).toBe(3)
  })
})

describe('many keys', () => {
  it('are leased up to the limit of tracked keys, and removed when idle', async () => {
    const { one, store, clock, calls } = bed({ maxPools: 2 })
    for (const key of ['a', 'b', 'c']) for (let i = 0; i < 3; i++) await one(1, rule, key)
    expect(calls.filter((call) => call === 'charge').length).toBe(5)
    expect(store.heldPermits).toBe(2)
    clock.advance(1_100)
    calls.length = 0
    for (let i = 0; i < 3; i++) await one(1, rule, 'c')
    expect(calls).toEqual(['charge', 'lease 1-3'])
  })
})
