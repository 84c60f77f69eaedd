/** Requests that leave while they wait, on a real clock: the bucket ends up as if those requests had never been made. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createLimiter, type Limiter, type LimiterOptions } from '../../../src/gate/limiter/create-limiter.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { dayMs, leaveAll, minuteMs, orders, settledState, stores, turn } from './held-requests.js'

/** One permit a minute, so that nothing is refilled while a test runs. */
const limits: Readonly<Record<string, Omit<LimiterOptions, 'store'>>> = {
  LEAKY_BUCKET: { algorithm: 'LEAKY_BUCKET', capacity: 400, window: '400m' },
  TOKEN_BUCKET: { capacity: 10, window: '10m' },
  'TOKEN_BUCKET by interval': { bands: [{ capacity: 3, window: '3m', refill: 'INTERVAL' }] },
  FIXED_WINDOW: { algorithm: 'FIXED_WINDOW', capacity: 400, window: '2d' },
  SLIDING_WINDOW_LOG: { algorithm: 'SLIDING_WINDOW_LOG', capacity: 4, window: '4m' },
}

function open(name: string, store: BucketStore, options: Partial<LimiterOptions> = {}): Limiter {
  const limiter = createLimiter({ ...(limits[name] as LimiterOptions), store, ...options } as LimiterOptions)
  onTestFinished(() => limiter.close())
  return limiter
}

interface State {
  readonly remaining: number
  readonly resetAt: number
  readonly degraded: boolean
}

/** The parts of a decision that do not change as time passes. */
async function stateOf(limiter: Limiter): Promise<State> {
  const { remaining, resetAt, degraded } = await limiter.peek('a')
  return { remaining, resetAt, degraded }
}

/** Takes the permits that are available without waiting, and returns the state after it. */
async function drain(limiter: Limiter, name: string): Promise<State> {
  if (name === 'LEAKY_BUCKET') await limiter.consume('a')
  else while ((await limiter.consume('a')).allowed);
  return stateOf(limiter)
}

/** Makes requests wait, one after another, and returns the functions that make them leave. */
async function hold(limiter: Limiter, count: number, permits: () => number = () => 1): Promise<(() => void)[]> {
  const leave: (() => void)[] = []
  for (let i = 0; i < count; i++) {
    const controller = new AbortController()
    limiter.wait('a', { permits: permits(), maxWaitMs: 300 * dayMs, signal: controller.signal }).catch(() => {})
    leave.push(() => controller.abort())
    // The next one is made when the store has replied to this one.
    await limiter.peek('a')
  }
  return leave
}

async function expectState(limiter: Limiter, expected: State): Promise<void> {
  expect(await settledState(() => stateOf(limiter), expected)).toEqual(expected)
}

describe.each(Object.entries(stores))('100 held requests, store: %s', (_, create) => {
  const seed = randomSeed()
  describe.each(Object.keys(limits))('%s', (name) => {
    it.each(Object.entries(orders))(`all leave, %s (seed ${seed})`, async (_, order) => {
      const random = seededRandom(seed)
      const limiter = open(name, create())
      const before = await drain(limiter, name)
      for (const pause of [undefined, turn, () => limiter.peek('a')]) {
        const leave = await hold(limiter, 100)
        expect(await stateOf(limiter)).not.toEqual(before)
        await leaveAll(leave, () => order(random), pause)
        await expectState(limiter, before)
      }
    })

    it(`all leave in random order, with different numbers of permits (seed ${seed})`, async () => {
      const random = seededRandom(seed)
      const limiter = open(name, create())
      const before = await drain(limiter, name)
      const leave = await hold(limiter, 100, () => 1 + Math.floor(random() * 3))
      await leaveAll(leave, random, turn)
      await expectState(limiter, before)
    })
  })

  it.each(['LEAKY_BUCKET', 'TOKEN_BUCKET'])(`%s: half of them leave in random order (seed ${seed})`, async (name) => {
    const random = seededRandom(seed)
    const limiter = open(name, create())
    const before = await drain(limiter, name)
    const leave = await hold(limiter, 100)
    const stay = Array.from({ length: 50 }, () => leave.splice(Math.floor(random() * leave.length), 1)[0] as () => void)
    await leaveAll(leave, random, turn)
    const remaining = name === 'LEAKY_BUCKET' ? before.remaining - 50 : 0
    await expectState(limiter, { ...before, remaining, resetAt: before.resetAt + 50 * minuteMs })
    await leaveAll(stay, random)
    await expectState(limiter, before)
  })

  it('charges nothing to requests for which the waiting room is full, even if they are concurrent', async () => {
    const limiter = open('TOKEN_BUCKET', create(), { maxConcurrentWaits: 5 })
    const before = await drain(limiter, 'TOKEN_BUCKET')
    for (let i = 0; i < 20; i++) limiter.wait('a', { maxWaitMs: dayMs }).catch(() => {})
    await expectState(limiter, { ...before, resetAt: before.resetAt + 5 * minuteMs })
  })
})

describe('a local clock that is set back while requests wait', () => {
  it('does not change which slots are released', async () => {
    let offset = 0
    const limiter = open('TOKEN_BUCKET', memoryStore(), { clock: { now: () => Date.now() + offset } })
    const before = await drain(limiter, 'TOKEN_BUCKET')
    const leave = await hold(limiter, 10)
    offset = -dayMs
    await leaveAll(leave, () => 0, turn)
    await expectState(limiter, before)
  })
})
