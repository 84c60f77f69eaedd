/** Requests that leave while Redis restarts: their permits are refunded when it is available again. */
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createLimiter, type Limiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { leaveAll, minuteMs, turn } from './held-requests.js'

const waits = 50

interface Scene {
  readonly server: RedisServer
  readonly limiter: Limiter
  /** The time at which the bucket would be full if no request waited. */
  readonly resetAt: number
  readonly leave: readonly (() => void)[]
}

/** 50 requests wait for a limit of one permit per minute, on a separate server. */
async function scene(config: readonly string[], algorithm = 'TOKEN_BUCKET', isOwnClient = false): Promise<Scene> {
  const server = await stopAfterTest(startRedis({ config }))
  const client = isOwnClient ? new Redis(server.uri) : undefined
  client?.on('error', () => {})
  onTestFinished(() => client?.disconnect())
  // A refund that times out is not repeated, so a busy machine gets more time than the default.
  const store = redisStore(client ?? server.uri, { timeoutMs: 2_000 })
  await store.ready?.(10_000)
  const limiter = createLimiter({ algorithm, capacity: 100, window: '100m', store })
  onTestFinished(async () => {
    await limiter.close()
    await store.close()
  })
  const drained = algorithm === 'LEAKY_BUCKET' ? 1 : 100
  await exactly(() => limiter.consume('a', drained))
  const { resetAt } = await exactly(() => limiter.peek('a'))
  const leave: (() => void)[] = []
  for (let i = 1; i <= waits; i++) {
    const controller = new AbortController()
    limiter.wait('a', { maxWaitMs: 1_000 * minuteMs, signal: controller.signal }).catch(() => {})
    leave.push(() => controller.abort())
    await eventually('the request waits', async () => (await limiter.peek('a')).resetAt === resetAt + i * minuteMs)
  }
  return { server, limiter, resetAt, leave }
}

/** A decision of Redis itself: on a busy machine, the first ones may be degraded. */
const exactly = <T extends { readonly degraded: boolean }>(ask: () => Promise<T>): Promise<T> =>
  eventually('Redis decides', async () => {
    const decision = await ask()
    return !decision.degraded && decision
  })

/** Kills the server, as in a power failure. Resolves when the limiter has noticed. */
async function powerFailure({ server, limiter }: Scene): Promise<void> {
  await server.kill()
  await eventually('decisions are made without Redis', async () => (await limiter.peek('a')).degraded)
}

/** The number of occupied slots, once Redis decides again and refunds have been sent. */
async function taken({ limiter, resetAt }: Scene): Promise<number> {
  const count = async (): Promise<number> => ((await exactly(() => limiter.peek('a'))).resetAt - resetAt) / minuteMs
  await eventually('all slots are released', async () => (await count()) === 0, 5_000).catch(() => {})
  return count()
}

const persistent = ['appendonly yes', 'appendfsync always']

describe(`${waits} requests leave while Redis restarts with its data`, () => {
  const seed = randomSeed()

  it.each(['TOKEN_BUCKET', 'LEAKY_BUCKET'])(
    `%s: the slots of all that leave during the outage are free again (seed ${seed})`,
    async (algorithm) => {
      const random = seededRandom(seed)
      const opened = await scene(persistent, algorithm)
      await powerFailure(opened)
      await leaveAll(opened.leave, random, turn)
      await opened.server.restart()
      expect(await taken(opened)).toBe(0)
    },
  )

  it('refunds them if all leave at once', async () => {
    const opened = await scene(persistent)
    await powerFailure(opened)
    await leaveAll(opened.leave, () => 0)
    await opened.server.restart()
    expect(await taken(opened)).toBe(0)
  })

  it('refunds them if they leave while the server loads its data', async () => {
    // Loading takes a second and a half, and commands are rejected in between.
    const opened = await scene([
      ...persistent,
      'rdbcompression no',
      'key-load-delay 5000',
      'loading-process-events-interval-bytes 1024',
    ])
    for (let i = 0; i < 300; i++) await opened.server.call('SET', `key-${i}`, 'x'.repeat(1_000))
    await opened.server.call('BGREWRITEAOF')
    await eventually('the file is rewritten', async () =>
      String(await opened.server.call('INFO', 'persistence')).includes('aof_rewrite_in_progress:0'),
    )
    await powerFailure(opened)
    const restarted = opened.server.restart()
    await eventually('the server is loading', async () => {
      const reply = await opened.server.call('GET', 'key-0').catch((error: unknown) => String(error))
      return String(reply).includes('LOADING')
    })
    await leaveAll(opened.leave, () => 0, turn)
    await restarted
    expect(await taken(opened)).toBe(0)
  })

  it('releases their slots: 30 of 50 leave, and the others move up', async () => {
    const opened = await scene(persistent)
    await powerFailure(opened)
    await leaveAll(opened.leave.slice(0, 30), () => 0, turn)
    await opened.server.restart()
    const { limiter, resetAt } = opened
    const reset = async (): Promise<number> => (await exactly(() => limiter.peek('a'))).resetAt
    await eventually('30 slots are released', async () => (await reset()) === resetAt + 20 * minuteMs)
    expect(await reset()).toBe(resetAt + 20 * minuteMs)
  })

  it('refunds them over a client that queues commands while disconnected', async () => {
    const opened = await scene(persistent, 'TOKEN_BUCKET', true)
    await powerFailure(opened)
    await leaveAll(opened.leave, () => 0, turn)
    await opened.server.restart()
    expect(await taken(opened)).toBe(0)
  })
})

describe(`${waits} requests leave while Redis restarts without its data`, () => {
  it('creates no key, and raises no bucket above its capacity', async () => {
    const opened = await scene([])
    const { server, limiter } = opened
    await powerFailure(opened)
    await leaveAll(opened.leave, () => 0, turn)
    await server.restart()
    // The limiter is not used in the meantime, so the first script on the server is for the refunds.
    await eventually('the refunds have been sent', async () =>
      /cmdstat_eval:calls=[1-9]/.test(String(await server.call('INFO', 'commandstats'))),
    )
    expect(await server.call('DBSIZE')).toBe(0)
    expect(await exactly(() => limiter.peek('a'))).toMatchObject({ allowed: true, remaining: 99 })
  })
})
