/** A key is leased only when that saves calls: operations are counted, not timed. */
import { describe, expect, it } from 'vitest'
import type { BucketGroup, Leasing } from '../../../src/core/bucket-store.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { type LeasedOptions, leased } from '../../../src/stores/leased/leased.js'
import { CachedRejections } from '../../../src/stores/redis/cached-rejections.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { resilient } from '../../../src/stores/resilient/resilient.js'
import { second, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'
import { bandOf, countOf, demandOf, groupOf, watched } from './test-leases.js'

const server = await ownRedis()
const client = clientOf(server)

/** Processes that share the buckets of a rule, each with its own leases. */
function processes(count: number, options: LeasedOptions = {}) {
  const clock = manualClock(startMs)
  const prefix = freshPrefix()
  const all = Array.from({ length: count }, () => {
    const rejectionCache = new CachedRejections({ clock })
    const over = watched(new RedisBuckets(connectionOf(client), { prefix, clock, rejectionCache }))
    /** Permits of each lease that was granted, in order. */
    const batches: number[] = []
    const leasing: Leasing = {
      ...over.leasing,
      lease: async (request) => {
        const result = await over.leasing.lease(request)
        if (result.lease !== undefined) batches.push(result.lease.permits)
        return result
      },
    }
    const { calls, quiet } = over
    const store = leased(resilient({ ...over, leasing, rejectionCache }, { clock, timeoutMs: 60_000 }), {
      clock,
      ...options,
    })
    return { store, calls, quiet, batches, granted: 0 }
  })
  return {
    clock,
    all,
    /** Every process makes requests at the same rate. They take turns in asking first. */
    async ask(group: BucketGroup, perSecond: number, seconds: number, keys: readonly string[] = ['a']): Promise<void> {
      for (let i = 0; i < perSecond * seconds; i++) {
        clock.advance(1_000 / perSecond)
        for (let turn = i; turn < i + count; turn++) {
          const process = all[turn % count] as (typeof all)[0]
          const charges = [demandOf(group, 1, { key: keys[i % keys.length] as string })]
          const result = process.store.chargeLocally?.(charges) ?? (await process.store.charge(charges, false))
          if (result.granted) process.granted += 1
          await process.quiet()
        }
      }
    },
  }
}

const wide = groupOf([bandOf({ capacity: 1_000_000, windowTicks: 1_000 * second })])

describe('cold keys', () => {
  it('cost the same calls as under EXACT, with no leases or settlements (10 000 keys, one request each)', async () => {
    const exact = groupOf(wide.bands, { isLeased: false })
    const commands = ['evalsha', 'eval', 'get', 'mget', 'set', 'time', 'del'] as const
    const count = async (group: BucketGroup) => {
      const { all, clock } = processes(1)
      const [{ store, calls, quiet }] = all as [(typeof all)[0]]
      const counts = await countCalls(server, commands, async () => {
        for (let turn = 0; turn < 100; turn++) {
          const keys = Array.from({ length: 100 }, (_, i) => `${turn}-${i}`)
          await Promise.all(keys.map((key) => store.charge([demandOf(group, 1, { key })], false)))
          clock.advance(10)
        }
        clock.advance(5_000)
        await store.close()
        await quiet()
      })
      return { counts, calls: [countOf(calls, 'charge'), countOf(calls, 'lease'), countOf(calls, 'settle')] }
    }
    // Loads the script first.
    await count(exact)
    const leasedCalls = await count(wide)
    expect(leasedCalls.calls).toEqual([10_000, 0, 0])
    expect(leasedCalls).toEqual(await count(exact))
  })

  it('are charged one by one at 30 requests per second, however long', async () => {
    const { all, ask } = processes(1)
    await ask(wide, 30, 10)
    expect(new Set(all[0]?.calls)).toEqual(new Set(['charge']))
  })
})

describe('a busy key', () => {
  it('makes few calls: at most 120 for 20 000 requests in 10 seconds', async () => {
    const { all, ask } = processes(1)
    await ask(wide, 2_000, 10)
    expect(all[0]?.granted).toBe(20_000)
    expect(all[0]?.calls.length).toBeLessThanOrEqual(120)
  })

  it('leases about the demand of a second, and less when the demand falls', async () => {
    const { all, ask } = processes(1)
    await ask(wide, 2_000, 5)
    const [{ batches }] = all as [(typeof all)[0]]
    expect(batches.at(-1)).toBeGreaterThan(1_000)
    expect(batches.at(-1)).toBeLessThan(4_000)
    await ask(wide, 100, 10)
    expect(batches.at(-1)).toBeLessThan(200)
  })

  it('is charged one by one again, without a lease, when it is no longer busy', async () => {
    const { all, ask } = processes(1)
    await ask(wide, 200, 3)
    const [{ calls, store }] = all as [(typeof all)[0]]
    await ask(wide, 5, 3)
    expect(store.heldPermits).toBe(0)
    calls.length = 0
    await ask(wide, 5, 10)
    expect(new Set(calls)).toEqual(new Set(['charge']))
  })

  it('is leased by two processes alike, in batches that do not shrink', async () => {
    const { all, ask } = processes(2)
    await ask(wide, 1_000, 10)
    for (const { granted, batches, calls } of all) {
      expect(granted).toBe(10_000)
      expect(Math.min(...batches)).toBeGreaterThanOrEqual(32)
      expect(batches.at(-1)).toBeGreaterThan(500)
      expect(calls.length).toBeLessThanOrEqual(100)
    }
  })
})

describe('a busy key whose callers wait for slow replies', () => {
  it('is leased at 16 requests per second, because callers that wait make no requests', async () => {
    const { all, clock } = processes(1)
    const [{ store, quiet, batches }] = all as [(typeof all)[0]]
    for (let round = 0; round < 10; round++) {
      const replies = Array.from({ length: 5 }, () => store.charge([demandOf(wide)], false))
      // The replies of Redis arrive after this time.
      clock.advance(300)
      await Promise.all(replies)
      await quiet()
    }
    expect(batches.length).toBeGreaterThan(0)
  })
})

describe('a key at its limit', () => {
  const limited = groupOf([bandOf({ capacity: 1_000, windowTicks: second })])

  it('costs no more operations than under EXACT and admits as much (4 processes)', async () => {
    const count = async (group: BucketGroup) => {
      const { all, ask } = processes(4)
      await ask(group, 500, 6)
      const sum = (of: (process: (typeof all)[0]) => number) => all.reduce((total, process) => total + of(process), 0)
      return {
        operations: sum(({ calls }) => calls.length),
        granted: sum(({ granted }) => granted),
        least: Math.min(...all.map(({ granted }) => granted)),
      }
    }
    const exact = await count(groupOf(limited.bands, { isLeased: false }))
    const byLeases = await count(limited)
    expect(byLeases.operations).toBeLessThanOrEqual(exact.operations)
    // The capacity and the refill of six seconds.
    expect(exact.granted).toBeLessThanOrEqual(7_000)
    expect(byLeases.granted).toBeLessThanOrEqual(7_000)
    expect(byLeases.granted).toBeGreaterThan(6_500)
    // No process is starved.
    expect(byLeases.least).toBeGreaterThan(1_000)
  })
})
