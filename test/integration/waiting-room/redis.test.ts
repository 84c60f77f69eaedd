/** Requests that wait for a shared limit, in limiters that represent several processes. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { BucketStore, Charge } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import type { Band } from '../../../src/core/rule.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createLimiter, type Limiter } from '../../../src/gate/limiter/create-limiter.js'
import type { SingleRuleInput } from '../../../src/rules/schema/input.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const clients = [new Redis(sharedRedis().uri), new Redis(sharedRedis().uri)]
afterAll(() => Promise.all(clients.map((client) => client.quit())))

const opened: Limiter[] = []
afterEach(() => Promise.all(opened.splice(0).map((limiter) => limiter.close())))

/** Two limiters that share only the data in Redis and the clock. */
function twoProcesses(options: SingleRuleInput) {
  const clock = manualClock(startMs)
  const prefix = freshPrefix()
  const limiters = clients.map((client) =>
    createLimiter({ ...options, clock, store: redisStore(client, { prefix, clock, timeoutMs: 10_000 }) }),
  )
  opened.push(...limiters)
  return { clock, limiters: limiters as [Limiter, Limiter] }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Makes a request and resolves when the store has replied, which is before the request is released. */
async function ask(limiter: Limiter, onReleased: () => void, signal?: AbortSignal): Promise<void> {
  limiter.wait('queue', { maxWaitMs: 60_000, ...(signal && { signal }) }).then(onReleased, () => {})
  await limiter.peek('queue')
  await settled()
}

async function pass(clock: ManualClock, ms: number, steps: number): Promise<void> {
  for (let i = 0; i < steps; i++) {
    clock.advance(ms / steps)
    await settled()
  }
}

describe('requests of two processes that wait for one limit', () => {
  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG'])(
    '%s: are released one after another, in order',
    async (algorithm) => {
      const capacity = algorithm === 'LEAKY_BUCKET' ? 10 : 1
      const { clock, limiters } = twoProcesses({ algorithm, capacity, refillTokens: capacity, window: `${capacity}s` })
      const released: [number, number][] = []
      for (let i = 0; i < 6; i++) await ask(limiters[i % 2] as Limiter, () => released.push([i, clock.now() - startMs]))
      await pass(clock, 6_000, 12)
      expect(released).toEqual([0, 1, 2, 3, 4, 5].map((i) => [i, i * 1_000]))
    },
  )

  it('are rejected at once if the wait would be too long, with the time at which they could queue', async () => {
    const { limiters } = twoProcesses({ capacity: 1, window: '1s' })
    await limiters[0].consume('queue')
    await ask(limiters[0], () => {})
    await ask(limiters[0], () => {})
    expect(await limiters[1].wait('queue', { maxWaitMs: 2_999 })).toMatchObject({
      allowed: false,
      reason: 'LIMITED',
      retryAfterMs: 1,
      policy: 'WAIT_FOR_REFILL',
    })
    expect(await limiters[1].peek('queue')).toMatchObject({ allowed: false, retryAfterMs: 3_000 })
  })

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG'])(
    '%s: leave the bucket unchanged if the last one in the queue gives up',
    async (algorithm) => {
      const { clock, limiters } = twoProcesses({ algorithm, capacity: 3, window: '3s' })
      clock.advance(0.123)
      // A full leaky bucket has no queue slot.
      for (let i = algorithm === 'LEAKY_BUCKET' ? 1 : 0; i < 3; i++) await limiters[0].consume('queue')
      clock.advance(0.789)
      const before = await limiters[1].peek('queue')
      const controller = new AbortController()
      const released: string[] = []
      await ask(limiters[0], () => released.push('before its time'), controller.signal)
      controller.abort()
      await settled()
      expect(released).toEqual([])
      expect(await limiters[1].peek('queue')).toEqual(before)
    },
  )

  it('of a leaky bucket are released no closer together than its rate', async () => {
    const { clock, limiters } = twoProcesses({ algorithm: 'LEAKY_BUCKET', capacity: 20, refillTokens: 7, window: '1s' })
    const released: number[] = []
    const controller = new AbortController()
    for (let i = 0; i < 10; i++)
      await ask(limiters[i % 2] as Limiter, () => released.push(clock.now()), i === 4 ? controller.signal : undefined)
    controller.abort()
    await settled()
    await ask(limiters[1], () => released.push(clock.now()))
    await pass(clock, 2_000, 2_000)
    expect(released.length).toBeGreaterThanOrEqual(9)
    const gaps = released.slice(1).map((at, i) => at - (released[i] as number))
    // A release is noticed at the next step of the clock, one millisecond.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1000 / 7 - 1)
  })

  it('are not released two at a time if one between them gives up', async () => {
    const { clock, limiters } = twoProcesses({ capacity: 1, window: '1s' })
    const released: [string, number][] = []
    const note = (name: string) => () => released.push([name, clock.now() - startMs])
    const controller = new AbortController()
    await ask(limiters[0], note('first'))
    await ask(limiters[0], note('leaves'), controller.signal)
    await ask(limiters[1], note('behind'))
    controller.abort()
    await settled()
    await ask(limiters[0], note('late'))
    await pass(clock, 4_000, 8)
    expect(released).toEqual([
      ['first', 0],
      ['behind', 2_000],
      ['late', 3_000],
    ])
  })
})

interface Grant {
  readonly at: number
  readonly permits: number
}

/** Makes requests and gives up at random on one store. Returns the released requests in order. */
async function live(store: BucketStore, clock: ManualClock, limit: Band, random: () => number): Promise<Grant[]> {
  const rule = group('rule', [limit])
  const came: Grant[] = []
  let waiting: { readonly demand: Charge; readonly at: number }[] = []
  for (let step = 0; step < 60; step++) {
    clock.advance(Math.floor(random() * random() * 2 * limit.windowTicks) / 1000)
    const now = clock.now() * 1000
    came.push(...waiting.filter(({ at }) => at <= now).map(({ at, demand: { permits } }) => ({ at, permits })))
    waiting = waiting.filter(({ at }) => at > now)
    const [leaver] = random() < 0.4 ? waiting.splice(Math.floor(random() * waiting.length), 1) : []
    if (leaver !== undefined)
      await store.refund([{ group: rule, key: 'a', permits: leaver.demand.permits, grantedAt: [leaver.at] }])
    const maxWaitTicks = Math.floor(random() * 8 * limit.windowTicks)
    const asked = chargeOf(rule, 'a', { permits: 1 + Math.floor(random() * limit.capacity), maxWaitTicks })
    const { granted, bands } = await store.charge([asked], false)
    if (granted) waiting.push({ demand: asked, at: now + (bands[0]?.delay ?? 0) })
  }
  return [...came, ...waiting.map(({ at, demand: { permits } }) => ({ at, permits }))].sort((a, b) => a.at - b.at)
}

/** The most permits that may be released within `elapsed` ticks, both ends included. */
const most: Readonly<Record<string, (limit: Band, elapsed: number) => number>> = {
  'TOKEN_BUCKET STEADY': (limit, elapsed) => limit.capacity + (elapsed * limit.refillTokens) / limit.windowTicks,
  'TOKEN_BUCKET INTERVAL': (limit, elapsed) =>
    limit.capacity + Math.ceil((elapsed + 1) / limit.windowTicks) * limit.refillTokens,
  'SLIDING_WINDOW_LOG STEADY': (limit, elapsed) =>
    elapsed < limit.windowTicks ? limit.capacity : Number.POSITIVE_INFINITY,
}

const stores: Readonly<Record<string, [(clock: Clock) => BucketStore, number]>> = {
  'memory store': [(clock) => memoryStore({ clock }), 300],
  'store in Redis': [
    (clock) => redisStore(clients[0] as Redis, { prefix: freshPrefix(), clock, timeoutMs: 10_000 }),
    15,
  ],
}

describe.each(Object.entries(stores))('requests that give up, on a %s', (_, [create, histories]) => {
  it('release the last slot of a leaky queue, whatever fraction of a microsecond its time has', async () => {
    const clock = manualClock(startMs)
    const store = create(clock)
    for (let refillTokens = 1; refillTokens <= 60; refillTokens++) {
      const rule = group(`rule${refillTokens}`, [band({ algorithm: 'LEAKY_BUCKET', capacity: 50, refillTokens })])
      for (let ahead = 1; ahead <= 3; ahead++) {
        await store.charge([chargeOf(rule, 'a')], false)
        const { now, bands } = await store.charge([chargeOf(rule, 'a', { permits: 9 })], false)
        await store.refund([{ group: rule, key: 'a', permits: 9, grantedAt: [now + (bands[0]?.delay ?? 0)] }])
        const left = await store.charge([chargeOf(rule, 'a', { permits: 0 })], true)
        expect([refillTokens, ahead, left.bands[0]?.remaining]).toEqual([refillTokens, ahead, 50 - ahead])
      }
    }
  })

  it('leave a slot of an interval empty while a later request waits, even after others have left', async () => {
    const clock = manualClock(startMs)
    const store = create(clock)
    const rule = group('rule', [band({ refill: 'INTERVAL', capacity: 3, windowTicks: second })])
    const ask = async (permits: number, maxWaitTicks: number) => {
      const asked = chargeOf(rule, 'a', { permits, maxWaitTicks })
      const { granted, now, bands } = await store.charge([asked], false)
      return { granted, permits, at: now + (bands[0]?.delay ?? 0) }
    }
    const leave = ({ permits, at }: Grant) => store.refund([{ group: rule, key: 'a', permits, grantedAt: [at] }])
    await ask(2, 0)
    const [early, between, late] = [await ask(2, second), await ask(3, 2 * second), await ask(1, 2 * second)]
    expect([early, between, late].map(({ at }) => at - startMs * 1000)).toEqual([second, 2 * second, 2 * second])
    await leave(between)
    await leave(early)
    clock.advance(1_500)
    // Three of these, the waiting one, and three of the next interval would be seven within half a second.
    expect(await ask(3, 0)).toMatchObject({ granted: false })
    expect(await ask(1, 0)).toMatchObject({ granted: true })
    await leave(late)
    clock.advance(500)
    expect(await ask(3, 0)).toMatchObject({ granted: true })
  })

  const seed = randomSeed()
  it.each(Object.keys(most))(`%s admits no more than without waiting (seed ${seed})`, async (name) => {
    const [algorithm, refill] = name.split(' ') as [Band['algorithm'], Band['refill']]
    for (let i = 0; i < histories; i++) {
      const random = seededRandom(seed + i)
      const capacity = 1 + Math.floor(random() * 5)
      const refillTokens = algorithm === 'SLIDING_WINDOW_LOG' ? capacity : 1 + Math.floor(random() * 3)
      const limit = band({ algorithm, refill, capacity, refillTokens, windowTicks: second })
      const clock = manualClock(startMs)
      const came = await live(create(clock), clock, limit, random)
      for (let first = 0; first < came.length; first++) {
        let permits = 0
        for (const { at, permits: one } of came.slice(first)) {
          permits += one
          const elapsed = at - (came[first] as Grant).at
          // Grants are at whole ticks, rounded up, so two of them may be a tick closer.
          const allowed = most[name]?.(limit, elapsed + 1) ?? 0
          if (permits > allowed)
            expect.unreachable(
              `seed ${seed + i}: ${permits} of ${allowed} in ${elapsed} ticks of ${JSON.stringify(limit)}`,
            )
        }
      }
    }
  })
})
