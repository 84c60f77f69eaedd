import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { banContract } from '../../../src/testing/bans/contract.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { ownRedis } from '../../servers/own-redis.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
const server = await ownRedis()
afterAll(() => client.quit())

const stores: [string, (clock: Clock) => BucketStore][] = [
  ['memory', (clock) => memoryStore({ clock })],
  ['Redis', (clock) => redisStore(client, { prefix: freshPrefix(), clock, timeoutMs: 20_000 })],
  [
    'Redis without cached rejections',
    (clock) => redisStore(client, { prefix: freshPrefix(), clock, timeoutMs: 20_000, cachedRejections: false }),
  ],
]

const start = 1_800_000_000_000
const ban = { after: 3, within: '1m', for: '15m', factor: 2, max: '1h' }
const minute = 60_000

describe.each(stores)('bans in %s', (_, create) => {
  const limiterOf = (fields: object = {}) => {
    const clock = manualClock(start)
    const limiter = createLimiter({ capacity: 1, window: '10s', ban, store: create(clock), clock, ...fields })
    const consume = (key = 'a') => limiter.consume(key)
    return { clock, limiter, consume }
  }

  it('start with the last of the rejections and end exactly', async () => {
    const { clock, consume, limiter } = limiterOf()
    expect((await consume()).allowed).toBe(true)
    expect(await consume()).toMatchObject({ reason: 'LIMITED', retryAfterMs: 10_000 })
    expect(await consume()).toMatchObject({ reason: 'LIMITED', retryAfterMs: 10_000 })
    expect(await consume()).toMatchObject({ reason: 'LIMITED', retryAfterMs: 15 * minute })
    expect(await consume()).toMatchObject({ allowed: false, reason: 'BANNED', retryAfterMs: 15 * minute, remaining: 0 })
    expect((await consume('b')).allowed).toBe(true)
    clock.advance(15 * minute - 1)
    expect(await consume()).toMatchObject({ reason: 'BANNED', retryAfterMs: 1 })
    expect(await limiter.peek('a')).toMatchObject({ reason: 'BANNED', retryAfterMs: 1 })
    clock.advance(1)
    expect((await consume()).allowed).toBe(true)
  })

  it('last longer each time, up to the maximum, until there was none for as long', async () => {
    const { clock, consume } = limiterOf()
    const lengths: (number | null)[] = []
    const banned = async () => {
      while ((await consume()).reason !== 'BANNED');
      const { retryAfterMs } = await consume()
      lengths.push((retryAfterMs ?? 0) / minute)
      clock.advance(retryAfterMs ?? 0)
    }
    for (let i = 0; i < 4; i++) await banned()
    clock.advance(60 * minute - 1)
    await banned()
    clock.advance(60 * minute)
    await banned()
    expect(lengths).toEqual([15, 30, 60, 60, 60, 15])
  })

  it('count only rejections within the time', async () => {
    const { clock, consume } = limiterOf({ window: '1h' })
    await consume()
    for (let i = 0; i < 10; i++) {
      expect((await consume()).reason).toBe('LIMITED')
      clock.advance(30_000)
    }
    // Three rejections; the first is exactly one minute old.
    expect((await consume()).reason).toBe('LIMITED')
    await consume()
    expect((await consume()).reason).toBe('BANNED')
  })

  it('reject without charging the bucket, and are not counted by peeks', async () => {
    const { clock, consume, limiter } = limiterOf({ capacity: 5, window: '1h' })
    for (let i = 0; i < 20; i++) await limiter.peek('a', 5)
    await limiter.consume('a', 4)
    for (let i = 0; i < 3; i++) await limiter.consume('a', 5)
    expect((await consume()).reason).toBe('BANNED')
    clock.advance(15 * minute)
    // 4 of 5 were used, and a quarter of an hour has refilled 1.25.
    expect(await limiter.peek('a', 2)).toMatchObject({ allowed: true })
  })

  it('end with a reset of the key', async () => {
    const { consume, limiter } = limiterOf()
    while ((await consume()).reason !== 'BANNED');
    await limiter.reset('a')
    expect((await consume()).allowed).toBe(true)
    expect(await consume()).toMatchObject({ reason: 'LIMITED', retryAfterMs: 10_000 })
  })

  it('concern one rule of a decision, whose other rules are not charged', async () => {
    const clock = manualClock(start)
    const band = { capacity: 1, window: '10s' }
    const rules = {
      id: 'api',
      rules: [
        { id: 'login', limitScope: 'USER_ID' as const, ban, bands: [band] },
        { id: 'all', limitScope: 'GLOBAL' as const, bands: [{ capacity: 100, window: '1h' }] },
      ],
    }
    const gate = await createFluxGate({ rules, store: create(clock), clock })
    onTestFinished(() => gate.close())
    for (let i = 0; i < 6; i++) await gate.check({ userId: 'ann' })
    const decision = await gate.check({ userId: 'ann' })
    expect(decision).toMatchObject({ reason: 'BANNED', ruleId: 'login', retryAfterMs: 15 * minute })
    expect(decision.bands.find(({ ruleId }) => ruleId === 'all')).toMatchObject({ allowed: true, remaining: 99 })
    expect((await gate.check({ userId: 'bob' })).allowed).toBe(true)
  })

  it('never concern a rule in SHADOW mode', async () => {
    const { consume } = limiterOf({ mode: 'SHADOW' })
    for (let i = 0; i < 10; i++) expect((await consume()).allowed).toBe(true)
  })
})

describe.each(stores)('a gate with a store in %s', (_, create) => {
  it('emits and counts the bans that its decisions start, and lifts them', async () => {
    const clock = manualClock(start)
    const rules = { id: 'api', rules: [{ id: 'login', ban, bands: [{ capacity: 1, window: '10s' }] }] }
    const gate = await createFluxGate({ rules, store: create(clock), clock, metrics: true })
    onTestFinished(() => gate.close())
    const events: object[] = []
    gate.on('ban', (event) => events.push(event))
    expect(await gate.metrics()).toContain('fluxgate_bans_total{rule_set="api",rule="login"} 0\n')
    for (let i = 0; i < 5; i++) await gate.check({ clientIp: '203.0.113.7' })
    const until = new Date(start + 15 * minute).toISOString()
    expect(events).toEqual([{ ruleSetId: 'api', ruleId: 'login', key: '203.0.113.7', until }])
    await gate.bans?.set('api', 'login', '198.51.100.1')
    expect(await gate.metrics()).toContain('fluxgate_bans_total{rule_set="api",rule="login"} 1\n')
    expect((await gate.bans?.list('api', 'login'))?.items.map(({ key }) => key)).toEqual([
      '198.51.100.1',
      '203.0.113.7',
    ])
    expect(await gate.bans?.lift('api', 'login', '203.0.113.7')).toBe(true)
    expect(await gate.check({ clientIp: '203.0.113.7' })).toMatchObject({ reason: 'LIMITED', retryAfterMs: 10_000 })
  })
})

describe('a ban in Redis', () => {
  const loginBan = { after: 1, within: '1m', for: '15m', factor: 2, max: '1h' }

  /** Limiters of two processes on the same server, with the same manual clock. */
  async function processes(fields: object = {}) {
    const clock = manualClock(start)
    const prefix = freshPrefix()
    const own = new Redis(server.port)
    const limiterOf = () => {
      const store = redisStore(own, { prefix, clock, timeoutMs: 20_000 })
      return createLimiter({ capacity: 1, window: '10s', ban: loginBan, store, clock, ...fields })
    }
    const [one, other] = [limiterOf(), limiterOf()]
    onTestFinished(() => own.disconnect())
    const banKey = async (limiter = one, key = 'a') => {
      while ((await limiter.consume(key)).reason !== 'BANNED');
    }
    return { clock, prefix, own, one, other, banKey }
  }

  it.each([
    ['a token bucket', {}],
    ['a log', { algorithm: 'SLIDING_WINDOW_LOG' }],
    ['a concurrency limit', { algorithm: 'CONCURRENCY', window: undefined }],
    ['a rule that keeps the used fraction', { onRuleChange: 'SCALE' }],
  ])('by %s costs one call per second', async (_, fields) => {
    const { clock, one, banKey } = await processes(fields)
    await banKey()
    // Waits until the ban is in the index.
    await one.bans.list()
    const decide = async () => {
      for (let i = 0; i < 100; i++)
        expect(await one.consume('a')).toMatchObject({
          reason: 'BANNED',
          retryAfterMs: start + 15 * minute - clock.now(),
        })
    }
    expect(await countCalls(server, ['evalsha'], decide)).toEqual({ evalsha: 0 })
    clock.advance(999)
    expect(await countCalls(server, ['evalsha'], decide)).toEqual({ evalsha: 0 })
    clock.advance(1)
    expect(await countCalls(server, ['evalsha'], decide)).toEqual({ evalsha: 1 })
  })

  it('by one of two rules with bans costs no call', async () => {
    const clock = manualClock(start)
    const own = new Redis(server.port)
    onTestFinished(() => own.disconnect())
    const band = { capacity: 100, window: '1h' }
    const rules = {
      id: 'api',
      rules: [
        { id: 'login', limitScope: 'USER_ID' as const, ban: loginBan, bands: [{ capacity: 1, window: '10s' }] },
        { id: 'all', limitScope: 'GLOBAL' as const, ban: loginBan, bands: [band] },
      ],
    }
    const store = redisStore(own, { prefix: freshPrefix(), clock, timeoutMs: 20_000 })
    const gate = await createFluxGate({ rules, store, clock })
    onTestFinished(() => gate.close())
    for (let i = 0; i < 3; i++) await gate.check({ userId: 'ann' })
    await gate.bans?.list('api', 'login')
    const decide = async () => {
      for (let i = 0; i < 100; i++) expect((await gate.check({ userId: 'ann' })).reason).toBe('BANNED')
    }
    expect(await countCalls(server, ['evalsha'], decide)).toEqual({ evalsha: 0 })
  })

  it('is known to other processes at once, and a lifted one within a second', async () => {
    const { clock, one, other, banKey } = await processes()
    await banKey()
    expect(await other.consume('a')).toMatchObject({ reason: 'BANNED', retryAfterMs: 15 * minute })
    expect(await other.bans.get('a')).toMatchObject({ key: 'a', retryAfterMs: 15 * minute, count: 1 })
    clock.advance(10_000)
    expect((await other.consume('a')).reason).toBe('BANNED')
    expect(await one.bans.lift('a')).toBe(true)
    expect((await one.consume('a')).allowed).toBe(true)
    await one.reset('a')
    clock.advance(999)
    expect((await other.consume('a')).reason).toBe('BANNED')
    clock.advance(1)
    expect((await other.consume('a')).allowed).toBe(true)
  })

  it('that is set by hand applies to the next decision of every process', async () => {
    const { clock, one, other } = await processes()
    expect((await other.consume('b')).allowed).toBe(true)
    const { ban: set, created } = await one.bans.set('a', { for: '1m' })
    expect([created, set]).toEqual([
      true,
      { key: 'a', until: new Date(start + minute).toISOString(), retryAfterMs: minute, count: 0 },
    ])
    expect(await other.consume('a')).toMatchObject({ reason: 'BANNED', retryAfterMs: minute })
    clock.advance(minute)
    expect((await other.consume('a')).allowed).toBe(true)
    await one.bans.set('a', { until: start + 2 * minute })
    expect((await other.consume('a')).retryAfterMs).toBe(minute)
  })

  it('is listed, page by page, with a bounded number of calls and no scan', async () => {
    const { one, other, banKey } = await processes()
    for (let i = 0; i < 300; i++) await banKey(one, `user${String(i).padStart(3, '0')}`)
    // The process that has started them lists them at once, others as soon as they are written.
    const first = await one.bans.list({ limit: 120 })
    const second = await other.bans.list({ limit: 120, cursor: first.cursor as string })
    const third = await other.bans.list({ limit: 120, cursor: second.cursor as string })
    const listed = [first, second, third].flatMap(({ items }) => items.map(({ key }) => key))
    expect(listed).toEqual(Array.from({ length: 300 }, (_, i) => `user${String(i).padStart(3, '0')}`))
    expect(third.cursor).toBeNull()
    expect((await other.bans.list({ prefix: 'user29' })).items).toHaveLength(10)
    const names = ['evalsha', 'get', 'zrangebylex', 'scan', 'keys', 'hscan', 'zscan'] as const
    expect(await countCalls(server, names, () => other.bans.list({ limit: 100 }))).toEqual({
      ...{ evalsha: 1, get: 100, zrangebylex: 1, scan: 0, keys: 0, hscan: 0, zscan: 0 },
    })
  })

  it('is listed by another process if the one that has started it has died', async () => {
    const { prefix, own, one, other, banKey } = await processes()
    await banKey()
    await one.bans.list()
    for (const name of await own.keys(`${prefix}:{bans*`)) await own.del(name)
    expect((await one.bans.list()).items).toEqual([])
    expect((await other.consume('a')).reason).toBe('BANNED')
    expect((await other.bans.list()).items.map(({ key }) => key)).toEqual(['a'])
  })

  it('leaves no key without a time to live', async () => {
    const { prefix, own, one, banKey } = await processes()
    await banKey()
    await one.bans.set('b')
    await one.bans.list()
    const names = await own.keys(`${prefix}*`)
    expect(names.length).toBeGreaterThanOrEqual(5)
    for (const name of names) expect(await own.pttl(name), name).toBeGreaterThan(0)
  })
})

describe('bans in a Redis Cluster', async () => {
  let cluster: Cluster
  let nodes: IoredisCluster
  beforeAll(async () => {
    cluster = await startCluster()
    nodes = new IoredisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
  })
  afterAll(async () => {
    nodes.disconnect()
    await cluster.stop()
  })

  banContract(
    it,
    (title, test) =>
      it(title, async () => {
        const clock = manualClock(start)
        const store = redisStore(nodes, { prefix: freshPrefix(), clock, timeoutMs: 20_000 })
        await test(store, clock)
        await store.close()
      }),
    (clock) => redisStore(nodes, { prefix: freshPrefix(), clock, timeoutMs: 20_000 }),
    { seed: randomSeed(), histories: 5 },
  )
})
