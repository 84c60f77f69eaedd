/** `leased` over buckets in a real Redis, on a clock that stands still: who is asked, what is held, and what goes back when. */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { BucketGroup, ChargeResult, LeasingStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { type LeasedOptions, leased } from '../../../src/stores/leased/leased.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { bucketStoreContract } from '../../../src/testing/bucket-store-contract.js'
import { second, startMs } from '../../../src/testing/demands.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { bandOf, demandOf, groupOf } from './test-leases.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

describe('leased, for rules that are not', () =>
  bucketStoreContract(
    it,
    (clock) => leased(new RedisBuckets(connectionOf(client), { prefix: freshPrefix(), clock }), { clock }),
    { histories: 20 },
  ))

/** Notes what the store is asked. */
function watched(store: LeasingStore, calls: string[]): LeasingStore {
  return {
    charge: (demands, peek) => {
      calls.push(peek ? 'peek' : 'charge')
      return store.charge(demands, peek)
    },
    lease: (request) => {
      calls.push(`lease ${request.permits}-${request.wanted}`)
      return store.lease(request)
    },
    settle: (settlements) => {
      calls.push(`settle ${settlements.map(({ permits }) => permits)}`)
      return store.settle(settlements)
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
    /** What the bucket itself has, beside what is held. */
    inStore: async (group: BucketGroup = rule, key = 'a') =>
      (await buckets.charge([demandOf(group, 0, { key })], true)).bands[0]?.remaining,
    /** So many callers, one after another. */
    async some(count: number): Promise<ChargeResult[]> {
      const results: ChargeResult[] = []
      for (let i = 0; i < count; i++) results.push(await one())
      return results
    },
  }
}

describe('a leased rule', () => {
  it('charges the first caller, and leases for those who follow closely', async () => {
    const { some, calls, store } = bed()
    await some(3)
    expect(calls).toEqual(['charge', 'lease 1-3'])
    expect(store.heldPermits).toBe(1)
    await some(2)
    expect(calls.slice(2)).toEqual(['settle 3', 'lease 1-4'])
    expect(store.heldPermits).toBe(3)
  })

  it('decides from memory, with what is left there and in the store', async () => {
    const { some, clock } = bed()
    await some(2)
    clock.advance(0.5)
    const [result] = await some(1)
    expect(result).toEqual({
      granted: true,
      now: startMs * 1000 + 500,
      bands: [{ allowed: true, delay: 0, retryAfter: 0, remaining: 997, resetAt: startMs * 1000 + 400_000 }],
      isUnasked: true,
    })
  })

  it('asks more seldom the more is asked of it, and holds no more than its share', async () => {
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

  it('admits exactly what there is, and then says when there will be more', async () => {
    const { one } = bed()
    let admitted = 0
    let result = await one()
    for (; result.granted; result = await one()) admitted += 1
    expect(admitted).toBe(1_000)
    expect(result.bands[0]).toMatchObject({ allowed: false, remaining: 0, retryAfter: 100_000 })
  })

  it('of many callers of one turn admits exactly what there is, in order, in one go', async () => {
    const { one, store, calls } = bed()
    const results = await Promise.all(Array.from({ length: 1_500 }, () => one()))
    const admitted = 1_000 - store.heldPermits
    expect(results.map(({ granted }) => granted)).toEqual(results.map((_, i) => i < admitted))
    expect(calls.filter((call) => call.startsWith('lease')).length).toBe(1)
  })

  it('lets callers wait for one lease together', async () => {
    const { one, some, calls } = bed()
    await some(3)
    const results = await Promise.all([one(2), one(1), one(1)])
    expect(results.every(({ granted }) => granted)).toBe(true)
    expect(calls.slice(2)).toEqual(['settle 2', 'lease 1-3'])
  })

  it('charges what is more than may be held, and can use what it held for it', async () => {
    const { one, some, calls, store } = bed()
    await some(5)
    expect(store.heldPermits).toBe(3)
    expect((await one(995)).granted).toBe(true)
    expect(calls.slice(4)).toEqual(['settle 1,-3', 'charge'])
    expect((await one(1)).granted).toBe(false)
  })

  it('is charged one by one where a share of its capacity is no more than a request', async () => {
    const { one, calls } = bed()
    const small = groupOf([bandOf({ capacity: 10 })])
    for (let i = 0; i < 10; i++) expect((await one(1, small)).granted).toBe(true)
    expect((await one(1, small)).granted).toBe(false)
    expect(new Set(calls)).toEqual(new Set(['charge']))
  })

  it('is charged one by one when a caller would wait for a refill', async () => {
    const { store, some, calls } = bed()
    await some(3)
    await store.charge([demandOf(rule, 1, { maxWaitTicks: second })], false)
    expect(calls.slice(2)).toEqual(['settle 2,-1', 'charge'])
  })

  it('fetches the next batch before the last one is used up', async () => {
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

describe('what is not used', () => {
  it('goes back once nobody has asked for a while, and the pool with it', async () => {
    const { some, clock, store, inStore } = bed()
    await some(5)
    expect(store.heldPermits).toBe(3)
    clock.advance(200)
    expect(store.heldPermits).toBe(3)
    clock.advance(100)
    expect(store.heldPermits).toBe(0)
    // Three were refilled meanwhile, beside what was held.
    expect(await inStore()).toBe(998)
  })

  it('goes back before its lease ends, though somebody still asks now and then', async () => {
    const { one, some, clock, store, inStore } = bed()
    await some(6)
    for (let i = 0; i < 18; i++) {
      clock.advance(100)
      if (i === 10) await one()
    }
    expect(store.heldPermits).toBe(0)
    // 18 have been refilled, but for what was held until it went back.
    expect(await inStore()).toBeGreaterThan(994)
  })

  it('is not spent once its lease has ended, even if nobody was awake to give it back', async () => {
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

  it('goes back when the rule is retired, is reset, or the store is closed', async () => {
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

  it('goes back when it arrives after the rule was retired, and whoever waited for it is served', async () => {
    const { one, some, store, inStore } = bed()
    await some(4)
    const waiting = one()
    store.retire?.(rule)
    expect((await waiting).granted).toBe(true)
    expect(await inStore()).toBe(995)
  })

  it('has no effect on what is forgotten while it was on its way', async () => {
    const { one, some, store, inStore } = bed()
    await some(4)
    const waiting = one()
    await store.reset(rule, 'a')
    expect((await waiting).granted).toBe(true)
    expect(store.heldPermits).toBe(0)
    await one()
    expect(await inStore()).toBeGreaterThanOrEqual(994)
  })

  it('makes room for a refund of what was spent', async () => {
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

  it('are charged together or not at all', async () => {
    const { store, inStore, clock } = bed()
    const demands = [demandOf(rule), demandOf(other), demandOf(shadow, 1, { shadow: true })]
    const granted = []
    for (let i = 0; i < 6; i++) granted.push((await store.charge(demands, false)).granted)
    expect(granted).toEqual([true, true, true, false, false, false])
    const refused = await store.charge(demands, false)
    expect(refused.bands.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 997],
      [false, 0],
      [true, 47],
    ])
    clock.advance(300)
    expect(store.heldPermits).toBe(0)
    expect([await inStore(), await inStore(other), await inStore(shadow)]).toEqual([1_000, 0, 48])
  })

  it('put back what they took if the store fails', async () => {
    const own = new Redis(sharedRedis().uri)
    const { store, some } = bed({ from: own })
    await some(5)
    expect(store.heldPermits).toBe(3)
    own.disconnect()
    await expect(store.charge([demandOf(rule), demandOf(other)], false)).rejects.toThrow()
    expect(store.heldPermits).toBe(3)
  })

  it('are decided from memory alone if all are leased', async () => {
    const { store, calls } = bed()
    const second = groupOf([bandOf({ capacity: 500 })], { ruleId: 'second' })
    const demands = [demandOf(rule), demandOf(second)]
    for (let i = 0; i < 20; i++) expect((await store.charge(demands, false)).granted).toBe(true)
    const before = calls.length
    expect(await store.charge(demands, false)).toMatchObject({ granted: true, isUnasked: true })
    expect(calls.length).toBe(before)
  })
})

describe('a store that is down', () => {
  it('is not missed until what is held has been spent, and its errors come through', async () => {
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
  it('counts what is held here as there to be had', async () => {
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
  it('are leased as long as there is room to remember them, and forgotten when they are idle', async () => {
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
