/** Accounting of leased permits in Redis: reserved, returned, expired, and visible to other callers. */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import type { BucketGroup, LeaseResult } from '../../../src/core/bucket-store.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { bandOf, demandOf, groupOf } from './test-leases.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

function bed(group: BucketGroup) {
  const clock = manualClock(startMs)
  const store = new RedisBuckets(connectionOf(client), { prefix: freshPrefix(), clock })
  const peek = async (permits = 0) => (await store.charge([demandOf(group, permits)], true)).bands
  return {
    clock,
    store,
    peek,
    lease: (permits: number, wanted: number) => store.leasing.lease({ group, key: 'a', permits, wanted }),
    /** Negative values are returned permits. */
    settle: (permits: number, { lease }: LeaseResult) =>
      store.leasing.settle([{ group, key: 'a', permits, ending: lease?.ending ?? 0 }]),
    charge: (permits: number, maxWaitTicks = 0) => store.charge([demandOf(group, permits, { maxWaitTicks })], false),
    remaining: async () => (await peek())[0]?.remaining,
  }
}

const steady = groupOf([bandOf({ capacity: 100, windowTicks: 10 * second })])

describe('a lease', () => {
  it('grants the available permits, from `permits` up to `wanted`', async () => {
    const { lease, charge } = bed(steady)
    expect((await lease(1, 30)).lease).toEqual({ permits: 30, ending: startMs * 1000 + 2 * second })
    await charge(60)
    expect((await lease(5, 30)).lease?.permits).toBe(10)
    const rejected = await lease(1, 30)
    expect(rejected).toMatchObject({ granted: false, bands: [{ allowed: false, retryAfter: 100_000, remaining: 0 }] })
    expect(rejected.lease).toBeUndefined()
  })

  it('lasts one to two seconds and ends at a whole second', async () => {
    const { lease, clock } = bed(steady)
    clock.advance(999.999)
    expect((await lease(1, 1)).lease?.ending).toBe(startMs * 1000 + 2 * second)
    clock.advance(0.001)
    expect((await lease(1, 1)).lease?.ending).toBe(startMs * 1000 + 3 * second)
  })

  it('of a fixed window lasts as long as the window', async () => {
    const { lease, clock } = bed(groupOf([bandOf({ algorithm: 'FIXED_WINDOW', windowTicks: 60 * second })]))
    clock.advance(5_000)
    expect((await lease(1, 10)).lease?.ending).toBe(startMs * 1000 + 60 * second)
  })

  it('under several bands ends with the first of them and is settled in all', async () => {
    const bands = [
      bandOf({ label: 'window', algorithm: 'FIXED_WINDOW', windowTicks: 1_500_000 }),
      bandOf({ label: 'level', capacity: 50 }),
    ]
    const { lease, settle, peek } = bed(groupOf(bands))
    const leased = await lease(1, 80)
    expect(leased.lease).toEqual({ permits: 50, ending: startMs * 1000 + 1_500_000 })
    await settle(-20, leased)
    expect((await peek()).map(({ remaining }) => remaining)).toEqual([70, 20])
    await settle(30, leased)
    expect((await peek()).map(({ remaining }) => remaining)).toEqual([70, 20])
    expect((await lease(1, 80)).lease?.permits).toBe(20)
  })
})

describe('reserved permits', () => {
  it('occupy capacity: the bucket does not refill it until the lease ends', async () => {
    const { lease, clock, remaining } = bed(steady)
    await lease(1, 40)
    clock.advance(1_999.999)
    expect(await remaining()).toBe(60)
    clock.advance(0.001)
    expect(await remaining()).toBe(60)
    clock.advance(100)
    expect(await remaining()).toBe(61)
  })

  it('occupy capacity, however late the bucket is read and by whichever call', async () => {
    type Bed = ReturnType<typeof bed>
    // In one turn, so that one call contains all of it.
    const looks: readonly [taken: number, looks: (bed: Bed) => Promise<unknown>[]][] = [
      [0, ({ peek }) => [peek(), peek(65)]],
      [2, ({ lease, charge }) => [lease(1, 1), charge(1)]],
      [2, ({ charge }) => [charge(1), charge(1)]],
      [1, ({ charge }) => [charge(99), charge(1)]],
      [1, ({ charge, lease }) => [charge(99), lease(1, 1), lease(99, 99)]],
    ]
    for (const [taken, look] of looks) {
      const leased = bed(steady)
      await leased.lease(1, 40)
      leased.clock.advance(2_500)
      await Promise.all(look(leased))
      // Half a second of refill since the lease ended, less what was taken.
      expect(await leased.remaining(), String(look)).toBe(65 - taken)
    }
  })

  it('expire lot by lot', async () => {
    const { lease, clock, remaining } = bed(steady)
    await lease(1, 10)
    clock.advance(1_000)
    await lease(1, 20)
    clock.advance(1_500)
    // Since 2 s there is capacity for 10 more permits, and at 2.5 s half of it has been refilled.
    expect(await remaining()).toBe(75)
    clock.advance(1_000)
    // At 3 s the bucket is full apart from the other lot, which expires then.
    expect(await remaining()).toBe(85)
  })

  it('free their capacity as soon as they are spent', async () => {
    const { lease, settle, clock, remaining } = bed(steady)
    const leased = await lease(1, 40)
    clock.advance(500)
    await settle(30, leased)
    clock.advance(500)
    expect(await remaining()).toBe(65)
    clock.advance(5_000)
    // The last 10 occupied capacity until 2 s, when the level was 75.
    expect(await remaining()).toBe(100)
  })

  it('are available at once when they are returned', async () => {
    const { lease, settle, charge, remaining } = bed(steady)
    const leased = await lease(1, 40)
    await settle(-40, leased)
    expect(await remaining()).toBe(100)
    expect((await charge(100)).granted).toBe(true)
  })

  it('leave no key behind when all are returned', async () => {
    const prefix = freshPrefix()
    const { leasing } = new RedisBuckets(connectionOf(client), { prefix })
    const { lease } = await leasing.lease({ group: steady, key: 'a', permits: 1, wanted: 40 })
    expect(await client.keys(`${prefix}*`)).toHaveLength(1)
    await leasing.settle([{ group: steady, key: 'a', permits: -40, ending: lease?.ending ?? 0 }])
    expect(await client.keys(`${prefix}*`)).toEqual([])
  })

  it('are not returned after the lease has expired, because their capacity may have been refilled', async () => {
    const { lease, settle, clock, charge } = bed(steady)
    const leased = await lease(1, 40)
    clock.advance(6_500)
    expect((await charge(100)).granted).toBe(true)
    await settle(-40, leased)
    expect((await charge(1)).granted).toBe(false)
  })

  it('are returned only once, however often the return is sent', async () => {
    const { lease, settle, remaining } = bed(steady)
    const leased = await lease(1, 10)
    await Promise.all([settle(-10, leased), settle(-10, leased), settle(10, leased)])
    await lease(1, 10)
    expect(await remaining()).toBe(90)
  })

  it('can be partly returned and partly spent in one call', async () => {
    const { lease, store, clock, remaining } = bed(steady)
    const [one] = [await lease(1, 10)]
    clock.advance(1_000)
    const two = await lease(1, 20)
    const settlement = { group: steady, key: 'a' }
    await store.leasing.settle([
      { ...settlement, permits: 4, ending: one.lease?.ending ?? 0 },
      { ...settlement, permits: -6, ending: one.lease?.ending ?? 0 },
      { ...settlement, permits: -20, ending: two.lease?.ending ?? 0 },
    ])
    expect(await remaining()).toBe(96)
  })

  it('of a fixed window are returned to that window only', async () => {
    const windows = groupOf([bandOf({ algorithm: 'FIXED_WINDOW', windowTicks: 10 * second })])
    const { lease, settle, clock, remaining, charge } = bed(windows)
    const leased = await lease(1, 40)
    await settle(10, leased)
    clock.advance(9_999.999)
    await settle(-20, leased)
    expect(await remaining()).toBe(80)
    clock.advance(0.001)
    await charge(5)
    await settle(-10, leased)
    expect(await remaining()).toBe(95)
  })
})

describe('other callers', () => {
  it('get the exact retry time for permits that reserved ones occupy', async () => {
    const { lease, clock, charge } = bed(steady)
    await lease(1, 60)
    clock.advance(1_000)
    await lease(1, 30)
    for (const permits of [5, 11, 41, 71, 100]) {
      const { granted, bands } = await charge(permits)
      if (granted) continue
      const wait = bands[0]?.retryAfter ?? 0
      const later = bed(steady)
      await later.lease(1, 60)
      later.clock.advance(1_000)
      await later.lease(1, 30)
      await later.charge(5)
      later.clock.advance((wait - 1) / 1000)
      expect((await later.charge(permits)).granted, `${permits} after ${wait - 1}`).toBe(false)
      later.clock.advance(0.001)
      expect((await later.charge(permits)).granted, `${permits} after ${wait}`).toBe(true)
    }
    expect((await charge(101)).bands[0]?.retryAfter).toBe(Number.POSITIVE_INFINITY)
  })

  it('that wait are not allowed before the reserved permits expire', async () => {
    const { lease, clock, charge } = bed(steady)
    await lease(1, 60)
    // From 2 s on there is capacity for 41, with 40 permits available.
    const rejected = await charge(41, 3 * second)
    expect(rejected).toMatchObject({ granted: false, bands: [{ retryAfter: 2 * second }] })
    clock.advance(2_000)
    expect(await charge(41, 3 * second)).toMatchObject({ granted: true, bands: [{ delay: 100_000 }] })
  })

  it('see the reset time that applies if all reserved permits are spent', async () => {
    const { lease, peek } = bed(steady)
    await lease(1, 40)
    expect((await peek())[0]).toMatchObject({ remaining: 60, resetAt: startMs * 1000 + 4 * second })
  })

  it('are refilled in intervals alongside reserved permits', async () => {
    const interval = groupOf([bandOf({ refill: 'INTERVAL', capacity: 10, windowTicks: second })])
    const { lease, settle, clock, charge, remaining } = bed(interval)
    const leased = await lease(1, 4)
    await charge(6)
    clock.advance(999)
    expect(await remaining()).toBe(0)
    clock.advance(1)
    expect(await remaining()).toBe(6)
    await settle(-3, leased)
    expect(await remaining()).toBe(9)
    clock.advance(1_000)
    expect(await remaining()).toBe(9)
    clock.advance(1_000)
    expect(await remaining()).toBe(10)
  })
})

describe('a clock that steps back', () => {
  it('by less than a lease: leases expire and are settled at the announced times', async () => {
    const { lease, settle, clock, remaining } = bed(steady)
    clock.advance(2_100)
    const before = await lease(1, 40)
    clock.advance(-1_500)
    const after = await lease(1, 20)
    expect(after.lease?.ending).toBe(startMs * 1000 + 2 * second)
    await settle(-20, after)
    await settle(-30, before)
    expect(await remaining()).toBe(90)
    clock.advance(3_400)
    expect(await remaining()).toBe(90)
    clock.advance(500)
    expect(await remaining()).toBe(95)
  })

  it('by far: the capacity of reserved permits is available again within seconds', async () => {
    const { lease, clock, remaining } = bed(steady)
    await lease(1, 40)
    clock.advance(-3_600_000)
    await lease(1, 1)
    clock.advance(4_000)
    expect(await remaining()).toBe(60)
    clock.advance(500)
    expect(await remaining()).toBe(65)
  })
})

describe('a rule edit', () => {
  it('to a smaller capacity keeps the sum of reserved and remaining permits within it', async () => {
    const { lease, store, clock } = bed(steady)
    await lease(1, 40)
    const smaller = groupOf([bandOf({ capacity: 50, windowTicks: 10 * second })])
    const remaining = async () => (await store.charge([demandOf(smaller, 0)], true)).bands[0]?.remaining
    expect(await remaining()).toBe(10)
    clock.advance(2_200)
    expect(await remaining()).toBe(11)
    const tiny = groupOf([bandOf({ capacity: 5, windowTicks: 10 * second })])
    await store.leasing.lease({ group: smaller, key: 'a', permits: 1, wanted: 8 })
    expect((await store.charge([demandOf(tiny, 5)], false)).granted).toBe(false)
    clock.advance(20_000)
    expect((await store.charge([demandOf(tiny, 5)], false)).granted).toBe(true)
  })
})
