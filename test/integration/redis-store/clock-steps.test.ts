/** The server's clock steps back while rejections are cached: no bucket rejects for longer than its window, and none refills. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BucketStore, Charge } from '../../../src/core/bucket-store.js'
import { algorithmNames, type Band } from '../../../src/core/rule.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { CachedRejections } from '../../../src/stores/redis/cached-rejections.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { resilient } from '../../../src/stores/resilient/resilient.js'
import { band, chargeOf, group, second, startMs } from '../../../src/testing/fixtures.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

let client: Redis
beforeAll(() => {
  client = new Redis(sharedRedis().uri)
})
afterAll(() => client.disconnect())

interface Bed {
  /** The server's clock, which steps back. */
  readonly server: ManualClock
  /** The clock of the processes, which never steps back. */
  readonly local: ManualClock
  readonly processes: readonly BucketStore[]
  pass(ms: number): void
}

/** Processes with cached rejections, whose clock is not the server's. */
function bed(count = 1): Bed {
  const [server, local] = [manualClock(startMs), manualClock(0)]
  const prefix = freshPrefix()
  const processes = Array.from({ length: count }, () => {
    const rejectionCache = new CachedRejections({ clock: local })
    const buckets = new RedisBuckets(connectionOf(client), { prefix, clock: server, localClock: local, rejectionCache })
    return resilient(buckets, { timeoutMs: 20_000 })
  })
  const pass = (ms: number) => {
    server.advance(ms)
    local.advance(ms)
  }
  return { server, local, processes, pass }
}

const kinds: [Band['algorithm'], Band['refill']][] = [
  ...algorithmNames.map((name): [Band['algorithm'], 'STEADY'] => [name, 'STEADY']),
  ['TOKEN_BUCKET', 'INTERVAL'],
]
const capacity = 4
const pollMs = 10

const charge = async (store: BucketStore, one: Charge, peek = false) => (await store.charge([one], peek)).granted

/** Milliseconds for which a drained bucket rejects, if the clock steps back some time after it was drained. */
async function rejectedFor(
  kind: readonly [Band['algorithm'], Band['refill']],
  { windowMs, phaseMs, stepAfterMs, backMs, peeks = false }: Step & { readonly peeks?: boolean },
): Promise<number> {
  const { server, local, processes, pass } = bed()
  const [store] = processes as [BucketStore]
  const [algorithm, refill] = kind
  const one = chargeOf(group('rule', [band({ algorithm, refill, capacity, windowTicks: windowMs * 1_000 })]), 'a')
  pass(phaseMs)
  for (let i = 0; i < capacity; i++) expect(await charge(store, one)).toBe(true)
  const drainedAt = local.now()
  let isStepped = backMs === 0
  while (!(await charge(store, one))) {
    pass(pollMs)
    if (!isStepped && local.now() - drainedAt >= stepAfterMs) {
      server.advance(-backMs)
      isStepped = true
    }
    if (peeks) await charge(store, one, true)
    expect(local.now() - drainedAt, 'rejected for three windows').toBeLessThan(3 * windowMs)
  }
  return local.now() - drainedAt
}

interface Step {
  readonly windowMs: number
  readonly phaseMs: number
  readonly stepAfterMs: number
  readonly backMs: number
}

const steps: readonly Step[] = [
  // The case in which a window of one second rejected for 1.73 s.
  { windowMs: 1_000, phaseMs: 270, stepAfterMs: 10, backMs: 5_000 },
  { windowMs: 1_000, phaseMs: 270, stepAfterMs: 500, backMs: 5_000 },
  { windowMs: 1_000, phaseMs: 0, stepAfterMs: 900, backMs: 3_300 },
  { windowMs: 1_000, phaseMs: 800, stepAfterMs: 700, backMs: 450 },
  // Longer than rejections are cached, so that the store is asked in between.
  { windowMs: 4_000, phaseMs: 0, stepAfterMs: 500, backMs: 7_000 },
  { windowMs: 4_000, phaseMs: 100, stepAfterMs: 2_500, backMs: 1_500 },
  { windowMs: 4_000, phaseMs: 3_000, stepAfterMs: 3_900, backMs: 86_400_500 },
]

describe.each(kinds)('a drained %s bucket, refilled %s', (...kind) => {
  const [algorithm, refill] = kind
  const longestMs = ({ windowMs, stepAfterMs }: Step): number => {
    // A counter still weighs its count in the next window.
    if (algorithm === 'SLIDING_WINDOW_COUNTER') return windowMs + windowMs / capacity
    // Holds are never cut short: after the step they last as long as if they had just been taken.
    return algorithm === 'CONCURRENCY' ? windowMs + stepAfterMs : windowMs
  }
  const continues = !['FIXED_WINDOW', 'SLIDING_WINDOW_COUNTER', 'CONCURRENCY'].includes(algorithm)

  it.each(steps)(
    'rejects no longer than it may: $windowMs ms, $stepAfterMs ms later back by $backMs ms',
    async (step) => {
      const rejected = await rejectedFor(kind, step)
      expect(rejected).toBeLessThanOrEqual(longestMs(step) + pollMs)
      // Windows follow the clock and now start at other times. Everything else continues as before.
      if (continues) expect(rejected).toBe(await rejectedFor(kind, { ...step, backMs: 0 }))
    },
  )

  it('does not reject for longer because of peeks', async () => {
    for (const step of steps)
      expect(await rejectedFor(kind, { ...step, peeks: true })).toBeLessThanOrEqual(longestMs(step) + pollMs)
  })

  it('keeps the charges of other processes since the step', async () => {
    const { server, processes, pass } = bed(2)
    const [one, other] = processes as [BucketStore, BucketStore]
    const rule = group('rule', [band({ algorithm, refill, capacity, windowTicks: second })])
    const asked = chargeOf(rule, 'a', { permits: capacity })
    expect(await charge(one, asked)).toBe(true)
    expect(await charge(one, asked)).toBe(false)
    server.advance(-10_000)
    // Nothing was cached there: the bucket is moved along, and drained once more when its window is over.
    expect(await charge(other, asked)).toBe(false)
    while (!(await charge(other, asked))) pass(pollMs)
    // No two calls are made at the same microsecond.
    pass(0.001)
    expect(await charge(one, asked)).toBe(false)
    expect(await charge(other, asked)).toBe(false)
  })
})

describe('two processes and a clock that steps back', () => {
  const seed = randomSeed()
  const exact = ['TOKEN_BUCKET', 'SLIDING_WINDOW_LOG'] as const
  it.each(exact)(`never admit more than a %s allows in real time (seed ${seed})`, async (algorithm) => {
    for (let history = 0; history < 20; history++) {
      const random = seededRandom(seed + history)
      const { server, local, processes, pass } = bed(2)
      const windowMs = 500 + Math.floor(random() * 3_000)
      const one = chargeOf(group('rule', [band({ algorithm, capacity, windowTicks: windowMs * 1_000 })]), 'a')
      const admitted: number[] = []
      for (let i = 0; i < 300; i++) {
        pass(0.001 + Math.floor(random() ** 3 * windowMs))
        if (random() < 0.05) server.advance(-Math.floor(random() * 5 * windowMs))
        const store = processes[random() < 0.5 ? 0 : 1] as BucketStore
        const peek = random() < 0.1
        if ((await charge(store, one, peek)) && !peek) admitted.push(local.now())
      }
      const perMs = algorithm === 'TOKEN_BUCKET' ? capacity / windowMs : 0
      const tooMany = admitted.flatMap((from, first) =>
        admitted.flatMap((to, last) => {
          const isWithin = last >= first && (algorithm !== 'SLIDING_WINDOW_LOG' || to - from < windowMs)
          const isTooMany = last - first + 1 > capacity + (to - from) * perMs + 1e-9
          return isWithin && isTooMany ? [`${last - first + 1} from ${from} to ${to}`] : []
        }),
      )
      expect(tooMany, `seed ${seed + history}`).toEqual([])
      expect(admitted.length).toBeGreaterThan(capacity)
    }
  })
})

describe('a real clock', () => {
  it('steps back by 5 s under a window of one second, which then rejects for one second', async () => {
    let back = 0
    let changed = 0
    // The script takes the time that it is given, or else asks the server for it.
    const setTime = (args: readonly (string | Buffer)[]): readonly (string | Buffer)[] =>
      args.map((arg) => {
        if (!String(arg).startsWith('[-1,')) return arg
        changed += 1
        return `[${Math.round((performance.timeOrigin + performance.now()) * 1_000) - back},${String(arg).slice(4)}`
      })
    const stepping = new Proxy(client, {
      get(real, name) {
        const value: unknown = Reflect.get(real, name, real)
        if (name !== 'createBuiltinCommand') return typeof value === 'function' ? value.bind(real) : value
        return (command: string) => {
          const { buffer } = real.createBuiltinCommand(command)
          return { buffer: (args: readonly (string | Buffer)[]) => buffer.call(real, setTime(args)) }
        }
      },
    })
    const store = redisStore(stepping, { prefix: freshPrefix(), timeoutMs: 20_000 })
    const limiter = createLimiter({ algorithm: 'FIXED_WINDOW', capacity: 1, window: '1s', store })
    let slowestMs = 0
    const consume = async () => {
      const askedAt = performance.now()
      const { allowed, degraded } = await limiter.consume('a')
      slowestMs = Math.max(slowestMs, performance.now() - askedAt)
      expect(degraded).toBe(false)
      return { allowed, askedAt }
    }
    let drainedAt = 0
    while ((await consume()).allowed) drainedAt = performance.now()
    back = 5_000_000
    for (;;) {
      const { allowed, askedAt } = await consume()
      if (allowed) break
      // The time of a write is known as precisely as the duration of the two calls around it.
      expect(askedAt - drainedAt).toBeLessThanOrEqual(1_000 + 2 * slowestMs)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect(changed).toBeGreaterThan(1)
    await limiter.close()
    await store.close()
  })
})
