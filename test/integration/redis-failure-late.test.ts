/** Answers that come after their deadline: nobody is admitted by them, and what they took is given back. */
import { Redis, Cluster as RedisCluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../src/app/create-flux-gate.js'
import { createLimiter, type LimiterOptions } from '../../src/app/create-limiter.js'
import { redisStore } from '../../src/app/redis-store.js'
import type { BandInput } from '../../src/rules/input.js'
import { type Cluster, startCluster } from '../servers/cluster.js'
import { eventually } from '../servers/eventually.js'
import { type RedisServer, startRedis } from '../servers/redis-server.js'
import { freshPrefix } from '../servers/shared-redis.js'

const timeoutMs = 200
/** So long that nothing comes back by itself while a test runs. */
const window = '30d'

const kinds: readonly (readonly [name: string, rule: LimiterOptions])[] = [
  ['TOKEN_BUCKET', { algorithm: 'TOKEN_BUCKET', capacity: 10, window }],
  ['TOKEN_BUCKET by intervals', { bands: [{ capacity: 10, window, refill: 'INTERVAL' }] }],
  ['LEAKY_BUCKET', { algorithm: 'LEAKY_BUCKET', capacity: 10, window }],
  ['FIXED_WINDOW', { algorithm: 'FIXED_WINDOW', capacity: 10, window }],
  ['SLIDING_WINDOW_LOG', { algorithm: 'SLIDING_WINDOW_LOG', capacity: 10, window }],
  ['SLIDING_WINDOW_COUNTER', { algorithm: 'SLIDING_WINDOW_COUNTER', capacity: 10, window }],
  [
    'two bands',
    {
      bands: [
        { capacity: 10, window },
        { capacity: 100, window, algorithm: 'FIXED_WINDOW' },
      ],
    },
  ],
]

describe('a server that hangs and goes on', () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.uri)
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })

  const open = (rule: LimiterOptions) => {
    const limiter = createLimiter({
      ...rule,
      store: redisStore(client, { prefix: freshPrefix(), timeoutMs, openMs: 50 }),
    })
    onTestFinished(() => limiter.close())
    return limiter
  }

  it.each(kinds)('%s: gets back what it gave to callers that were gone', async (_, rule) => {
    const limiter = open(rule)
    expect(await limiter.consume('a', 3)).toMatchObject({ allowed: true, degraded: false, remaining: 7 })
    server.pause()
    const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.consume('a')))
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(Array(5).fill([true, true]))
    server.resume()
    // As it was before, but for the one that is looked for.
    await eventually('nothing is lost', async () => {
      const { degraded, remaining } = await limiter.peek('a')
      return !degraded && remaining === 6
    })
    const rest = await Promise.all(Array.from({ length: 9 }, () => limiter.consume('a')))
    expect(rest.filter(({ allowed, degraded }) => allowed && !degraded)).toHaveLength(7)
    expect(rest.filter(({ degraded }) => degraded)).toEqual([])
  })

  it('forgets that it refused, once permits are back', async () => {
    const limiter = open({ capacity: 2, window })
    server.pause()
    await Promise.all([limiter.consume('a'), limiter.consume('a')])
    const late = limiter.consume('a')
    server.resume()
    // The two before it have taken everything when it is asked.
    await late
    await eventually('both permits are there', async () => {
      const { allowed, degraded } = await limiter.consume('a', 2)
      return allowed && !degraded
    })
  })

  it('gives back no more than it took: refusals, peeks and refunds that come late change nothing', async () => {
    const limiter = open({ capacity: 5, window })
    await limiter.consume('a', 5)
    server.pause()
    await Promise.all([limiter.consume('a'), limiter.peek('a'), limiter.consume('b', 6)])
    server.resume()
    await eventually('it answers', async () => !(await limiter.peek('a')).degraded)
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    expect(await limiter.peek('b')).toMatchObject({ allowed: true, remaining: 4 })
  })
})

describe('one of several nodes that hangs and goes on', () => {
  let cluster: Cluster
  beforeAll(async () => {
    // None of them is to be declared dead meanwhile.
    cluster = await startCluster({ nodeTimeoutMs: 20_000 })
  })
  afterAll(() => cluster.stop())

  it('loses nothing, and neither do those that have answered in time', async () => {
    const client = new RedisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
    const bands: BandInput[] = [{ capacity: 10, window }]
    const prefix = freshPrefix()
    const rules = {
      id: 'api',
      rules: [
        { id: 'user', limitScope: 'USER_ID', bands },
        { id: 'key', limitScope: 'API_KEY', bands },
      ],
    } as const
    const gate = await createFluxGate({ rules, store: redisStore(client, { prefix, timeoutMs, openMs: 50 }) })
    const watcher = await createFluxGate({ rules, store: redisStore(client, { prefix, timeoutMs: 10_000 }) })
    onTestFinished(async () => {
      await Promise.all([gate.close(), watcher.close()])
      client.disconnect()
    })
    // "foo" is in slot 12182 and "bar" in 5061.
    const context = { userId: 'foo', apiKey: 'bar' }
    const remaining = async () => (await watcher.check(context, { peek: true })).bands.map((band) => band.remaining)
    expect((await gate.check(context)).bands.map((band) => band.remaining)).toEqual([9, 9])
    const node = await cluster.primaryOf(12_182)
    node.pause()
    const decisions = await Promise.all(Array.from({ length: 5 }, () => gate.check(context)))
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(Array(5).fill([true, true]))
    node.resume()
    await eventually('nothing is lost', async () => String(await remaining()) === '8,8')
  })
})
