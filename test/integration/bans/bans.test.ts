import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
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
    // Three rejections, of which the first is exactly one minute old.
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

describe('a ban in Redis', () => {
  it('costs no call while it lasts', async () => {
    const store = redisStore(client, { prefix: freshPrefix(), timeoutMs: 20_000 })
    const limiter = createLimiter({ capacity: 1, window: '10s', ban, store })
    while ((await limiter.consume('a')).reason !== 'BANNED');
    const calls = async () => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1])
    const [decisions, before] = [200, await calls()]
    for (let i = 0; i < decisions; i++) expect((await limiter.consume('a')).reason).toBe('BANNED')
    // Other tests use the server too, so this only excludes one call per decision.
    expect((await calls()) - before).toBeLessThan(decisions)
  })
})
