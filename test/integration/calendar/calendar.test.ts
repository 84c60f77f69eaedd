import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import type { Clock } from '../../../src/core/clock.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { RateLimitHeaders } from '../../../src/http/rate-limit-headers.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { compareWithModel } from '../../../src/testing/compare-with-model.js'
import { chargeOf, group } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

const stores: [string, (clock: Clock) => BucketStore][] = [
  ['memory', (clock) => memoryStore({ clock })],
  ['Redis', (clock) => redisStore(client, { prefix: freshPrefix(), clock, timeoutMs: 20_000 })],
]

const monthly = { algorithm: 'FIXED_WINDOW', capacity: 3, calendar: 'MONTH', timeZone: 'America/New_York' } as const

describe.each(stores)('calendar quotas in %s', (_, create) => {
  const seed = randomSeed()
  it(`agree with the reference model over random histories (seed ${seed})`, { timeout: 120_000 }, async () => {
    for (let i = 0; i < 60; i++)
      await compareWithModel(create, {
        seed: seed + i,
        steps: 60,
        maxCapacity: i % 2 === 0 ? 5 : 1e9,
        algorithms: i % 3 === 0 ? ['FIXED_WINDOW', 'TOKEN_BUCKET'] : ['FIXED_WINDOW'],
        calendars: true,
      })
  })

  it('start again exactly at the end of the month in the time zone', async () => {
    const clock = manualClock(Date.parse('2026-03-31T23:59:59.000-04:00'))
    const limiter = createLimiter({ ...monthly, store: create(clock), clock })
    for (const remaining of [2, 1, 0]) expect(await limiter.consume('a')).toMatchObject({ allowed: true, remaining })
    expect(await limiter.consume('a')).toMatchObject({
      allowed: false,
      reason: 'LIMITED',
      retryAfterMs: 1_000,
      resetAt: Date.parse('2026-04-01T00:00:00.000-04:00'),
    })
    clock.advance(999)
    expect((await limiter.consume('a')).allowed).toBe(false)
    expect((await limiter.peek('a')).retryAfterMs).toBe(1)
    clock.advance(1)
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, remaining: 2 })
    await limiter.refund('a')
    expect(await limiter.peek('a')).toMatchObject({ remaining: 2 })
  })

  it('report the length of the current period as the window', async () => {
    const clock = manualClock(Date.parse('2026-03-15T00:00:00Z'))
    const limiter = createLimiter({ ...monthly, id: 'plan', store: create(clock), clock })
    const decision = await limiter.consume('a')
    expect(decision.bands[0]).toMatchObject({ label: '3-per-month', windowMs: (31 * 24 - 1) * 3_600_000 })
    expect(new RateLimitHeaders('standard').of(decision, clock.now())).toMatchObject({
      'RateLimit-Policy': `"plan.3-per-month";q=3;w=${(31 * 24 - 1) * 3600}`,
      RateLimit: `"plan.3-per-month";r=2;t=${(Date.parse('2026-04-01T04:00:00Z') - clock.now()) / 1_000}`,
    })
    clock.advance(20 * 86_400_000)
    expect((await limiter.consume('a')).bands[0]?.windowMs).toBe(30 * 86_400_000)
  })

  it('let requests wait for the next period with WAIT_FOR_REFILL', async () => {
    const clock = manualClock(Date.parse('2026-12-31T14:59:58Z'))
    const calendar = { algorithm: 'FIXED_WINDOW', capacity: 1, calendar: 'YEAR', timeZone: 'Asia/Seoul' } as const
    const store = create(clock)
    const limiter = createLimiter({ ...calendar, onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 5_000, store, clock })
    expect((await limiter.consume('a')).delayMs).toBe(0)
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, delayMs: 2_000 })
    expect((await limiter.consume('a')).allowed).toBe(false)
  })

  it('apply with overrides of the same calendar, and list them', async () => {
    const clock = manualClock(Date.parse('2026-05-14T12:00:00Z'))
    const band = { capacity: 2, calendar: 'MONTH', timeZone: 'Asia/Seoul', anchor: 15 } as const
    const rules = {
      id: 'api',
      rules: [
        { id: 'plan', limitScope: 'API_KEY' as const, algorithm: 'FIXED_WINDOW', overrides: true, bands: [band] },
      ],
    }
    const gate = await createFluxGate({ rules, store: create(clock), clock })
    onTestFinished(() => gate.close())
    const put = (bands: object[]) => gate.overrides?.put('api', 'plan', { key: 'big', action: 'LIMIT', bands } as never)
    await put([{ ...band, capacity: 4 }])
    await expect(put([{ ...band, capacity: 4, anchor: 1 }])).rejects.toThrow(
      'bands[0].calendar: must be that of the rule: {"calendar":"MONTH","timeZone":"Asia/Seoul","anchor":15}',
    )
    expect(await gate.overrides?.get('api', 'plan', 'big')).toMatchObject({
      bands: [{ capacity: 4, calendar: 'MONTH', timeZone: 'Asia/Seoul', anchor: 15 }],
    })
    const allowed = async (apiKey: string) => {
      let count = 0
      while ((await gate.check({ apiKey })).allowed) count++
      return count
    }
    expect([await allowed('big'), await allowed('small')]).toEqual([4, 2])
    expect((await gate.check({ apiKey: 'big' })).retryAfterMs).toBe(3 * 3_600_000)
    clock.advance(3 * 3_600_000)
    expect([await allowed('big'), await allowed('small')]).toEqual([4, 2])
  })
})

describe('calendar quotas in Redis', () => {
  it.each([-400, -40, 40, 400])('follow the clock of the server, with a process clock %i days off', async (days) => {
    const localClock = { now: () => Date.now() + days * 86_400_000 }
    const buckets = new RedisBuckets(connectionOf(client), { prefix: freshPrefix(), localClock })
    const calendar = { unit: 'MONTH', timeZone: 'Asia/Seoul', month: 1, day: 1 } as const
    const windowTicks = 31 * 86_400_000_000
    const terms = { refill: 'STEADY', capacity: 2, refillTokens: 2, windowTicks, calendar } as const
    const charge = chargeOf(group('rule', [{ label: 'month', algorithm: 'FIXED_WINDOW', ...terms }]), 'a')
    const results = await Promise.all(Array.from({ length: 3 }, () => buckets.charge([charge], false)))
    expect(results.map(({ granted }) => granted)).toEqual([true, true, false])
    const seoulMs = Date.now() + 9 * 3_600_000
    const date = new Date(seoulMs)
    const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) - 9 * 3_600_000
    expect(results[2]?.bands[0]?.resetAt).toBe(end * 1_000)
  })

  it('can be leased', async () => {
    const store = redisStore(sharedRedis().uri, { prefix: freshPrefix(), timeoutMs: 20_000 })
    onTestFinished(() => store.close())
    const limiter = createLimiter({ ...monthly, capacity: 50, consistency: 'LEASED', store })
    let allowed = 0
    for (let i = 0; i < 80; i++) if ((await limiter.consume('a')).allowed) allowed++
    expect(allowed).toBe(50)
  })
})
