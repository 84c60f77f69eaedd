/** Rules with `onRuleChange: SCALE`: random histories with changing definitions agree with the reference models. */
import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter, type LimiterOptions } from '../../../src/gate/limiter/create-limiter.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { parseRuleSets } from '../../../src/rules/schema/parse-rules.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { compareWithModel } from '../../../src/testing/compare-with-model.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { inOneSlot } from '../../fixtures/same-slot.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
let cluster: Cluster
let clusterClient: IoredisCluster
beforeAll(async () => {
  cluster = await startCluster()
  clusterClient = new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
})
afterAll(async () => {
  await client.quit()
  clusterClient.disconnect()
  await cluster.stop()
})

const settings = { timeoutMs: 20_000 }
const isFull = process.env.FLUXGATE_TEST_LOAD === 'full'
const seed = randomSeed()

type Scaled = 'FORWARD' | 'ALTERNATING'

/** Only one version of a rule is in effect in a process, so cached rejections are compared with changes in one direction. */
const stores: [string, Scaled, number, (clock: Clock) => BucketStore][] = [
  ['memory', 'ALTERNATING', isFull ? 5_000 : 60, (clock) => memoryStore({ clock })],
  [
    'Redis',
    'FORWARD',
    isFull ? 3_000 : 40,
    (clock) => redisStore(client, { ...settings, prefix: freshPrefix(), clock }),
  ],
  [
    'Redis without cached rejections',
    'ALTERNATING',
    isFull ? 3_000 : 40,
    (clock) => redisStore(client, { ...settings, prefix: freshPrefix(), clock, cachedRejections: false }),
  ],
  [
    'a Redis Cluster',
    'ALTERNATING',
    isFull ? 1_000 : 20,
    (clock) =>
      inOneSlot(redisStore(clusterClient, { ...settings, prefix: freshPrefix(), clock, cachedRejections: false })),
  ],
]

describe.each(stores)('changed definitions in %s', (_, scaled, histories, create) => {
  it(`agree with the reference models over ${histories} histories (seed ${seed})`, async () => {
    for (let i = 0; i < histories; i += 10)
      await Promise.all(
        Array.from({ length: 10 }, (_, n) => i + n).map((history) =>
          compareWithModel(create, {
            seed: seed + history,
            steps: 80,
            scaled,
            calendars: history % 3 === 0,
            maxCapacity: history % 2 === 0 ? 20 : 1e9,
          }),
        ),
      )
  }, 900_000)
})

/** Limiters of two processes with different versions of a rule, on the same buckets. */
function versions(fields: object) {
  const prefix = freshPrefix()
  const limiterOf = (capacity: number, window = '366d') => {
    const store = redisStore(client, { ...settings, prefix, cachedRejections: false })
    const bands = [{ label: 'limit', capacity, window }]
    const limiter = createLimiter({ onRuleChange: 'SCALE', bands, store, ...fields } as LimiterOptions)
    const close = async () => {
      await limiter.close()
      await store.close()
    }
    onTestFinished(close)
    return { ...limiter, close }
  }
  const remaining = async (capacity: number) => (await limiterOf(capacity).state('a')).remaining
  return { prefix, limiterOf, remaining }
}

describe('a changed definition in Redis', () => {
  it.each(['TOKEN_BUCKET', 'FIXED_WINDOW'] as const)('counts the leased permits of a %s once', async (algorithm) => {
    const { limiterOf, remaining } = versions({ algorithm, consistency: 'LEASED' })
    const [before, after] = [limiterOf(1_000), limiterOf(500)]
    for (let i = 0; i < 100; i++) expect((await before.consume('a')).allowed).toBe(true)
    for (let i = 0; i < 50; i++) expect((await after.consume('a')).allowed).toBe(true)
    // Both processes return what they hold.
    await before.close()
    await after.close()
    expect(await remaining(1_000)).toBe(800)
    expect(await remaining(500)).toBe(400)
  })

  it('never allows more than the whole to both versions together, with leases', async () => {
    const { limiterOf } = versions({ algorithm: 'FIXED_WINDOW', consistency: 'LEASED' })
    const [before, after] = [limiterOf(300), limiterOf(100)]
    let used = 0
    for (let i = 0; i < 500; i++) {
      if ((await before.consume('a')).allowed) used += 1
      if ((await after.consume('a')).allowed) used += 3
    }
    expect(used).toBeLessThanOrEqual(300)
    expect(used).toBeGreaterThan(200)
  })

  it('keeps a rejected bucket for as long as the new definition needs', async () => {
    const { prefix, limiterOf } = versions({ algorithm: 'TOKEN_BUCKET' })
    await limiterOf(10, '1m').consume('a', 10)
    const [key = ''] = await client.keys(`${prefix}:{a}:*`)
    expect(await client.pttl(key)).toBeLessThanOrEqual(60_001)
    expect((await limiterOf(10, '1h').consume('a', 5)).allowed).toBe(false)
    expect(await client.pttl(key)).toBeGreaterThan(1_800_000)
  })

  it('rewrites long logs once', async () => {
    const { limiterOf, remaining } = versions({ algorithm: 'SLIDING_WINDOW_LOG' })
    const before = limiterOf(1_000)
    for (let i = 0; i < 40; i++) await before.consume('a', 10)
    const after = limiterOf(300)
    expect((await after.consume('a', 30)).remaining).toBe(150)
    for (let i = 0; i < 20; i++) await after.consume('a', 3)
    expect(await remaining(300)).toBe(90)
    expect(await remaining(1_000)).toBe(300)
  })
})

describe.each(['memory', 'Redis'])('an override in %s', (where) => {
  it('with bands of its own does not change with the rule', async () => {
    let capacity = 100
    const rule = (): RuleInput => ({
      id: 'users',
      limitScope: 'USER_ID',
      overrides: true,
      onRuleChange: 'SCALE',
      bands: [{ label: 'hour', capacity, window: '1h' }],
    })
    const load = async () => parseRuleSets([{ id: 'api', rules: [rule()] }])
    const store = where === 'memory' ? memoryStore() : redisStore(client, { ...settings, prefix: freshPrefix() })
    const gate = await createFluxGate({ rules: { load, source: 'test' }, store })
    onTestFinished(() => gate.close())
    await gate.overrides?.put('api', 'users', {
      key: 'ann',
      action: 'LIMIT',
      bands: [{ capacity: 1_000, window: '366d' }],
    })
    for (const userId of ['ann', 'bob']) await gate.check({ userId }, { permits: 40 })
    capacity = 50
    await gate.reload()
    const remaining = async (userId: string) => (await gate.check({ userId }, { permits: 1 })).remaining
    expect([await remaining('ann'), await remaining('bob')]).toEqual([959, 29])
  })
})
