/** Overrides through a gate, in memory and in Redis: decisions, and when processes see a change. */
import { afterEach, describe, expect, it } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { countCalls } from '../../fixtures/command-counts.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const server = await ownRedis()
const client = clientOf(server)
const opened: FluxGate[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((gate) => gate.close()))
})

const ruleSets: RuleSetInput[] = [
  {
    id: 'api',
    rules: [
      { id: 'keys', limitScope: 'API_KEY', overrides: true, path: '/keys/**', bands: [{ capacity: 2, window: '1h' }] },
      { id: 'ips', limitScope: 'IP', overrides: true, path: '/ips/**', bands: [{ capacity: 2, window: '1h' }] },
      {
        id: 'waiting',
        limitScope: 'API_KEY',
        overrides: true,
        path: '/waiting/**',
        onLimitExceed: 'WAIT_FOR_REFILL',
        bands: [{ capacity: 1, window: '1h' }],
      },
      {
        id: 'leased',
        limitScope: 'API_KEY',
        overrides: true,
        consistency: 'LEASED',
        path: '/leased/**',
        bands: [{ capacity: 1_000, window: '1h' }],
      },
      { id: 'plain', limitScope: 'API_KEY', path: '/keys/two', bands: [{ capacity: 3, window: '1h' }] },
    ],
  },
]

async function open(store: BucketStore): Promise<FluxGate> {
  const gate = await createFluxGate({ rules: ruleSets, store })
  opened.push(gate)
  return gate
}

const stores: readonly [string, () => BucketStore][] = [
  ['memory', () => memoryStore()],
  ['redis', () => redisStore(client, { prefix: freshPrefix(), timeoutMs: 20_000 })],
]

describe.each(stores)('overrides in %s', (_, create) => {
  const key = (apiKey: string, path = '/keys/one') => ({ apiKey, path })

  it('give a key other bands, no limit, or no permits', async () => {
    const gate = await open(create())
    const overrides = gate.overrides ?? expect.unreachable()
    expect(
      await overrides.put('api', 'keys', { key: 'big', action: 'LIMIT', bands: [{ capacity: 5_000, window: '1m' }] }),
    ).toEqual({ created: true })
    await overrides.put('api', 'keys', { key: 'free', action: 'ALLOW', note: 'our own' })
    await overrides.put('api', 'keys', { key: 'bad', action: 'DENY' })
    expect(await gate.check(key('big'))).toMatchObject({
      allowed: true,
      reason: 'ALLOWED',
      ruleId: 'keys',
      key: 'big',
      limit: 5_000,
      remaining: 4_999,
      band: '5000-per-1m',
    })
    expect(await gate.check(key('free'), { permits: 1_000 })).toMatchObject({
      allowed: true,
      reason: 'ALLOW_LISTED',
      ruleId: 'keys',
      key: 'free',
      limit: -1,
      remaining: -1,
      retryAfterMs: 0,
      bands: [],
    })
    expect(await gate.check(key('bad'))).toMatchObject({
      allowed: false,
      reason: 'DENY_LISTED',
      ruleId: 'keys',
      key: 'bad',
      remaining: 0,
      retryAfterMs: null,
      bands: [],
    })
    expect(await gate.check(key('other'))).toMatchObject({ reason: 'ALLOWED', limit: 2, remaining: 1 })
  })

  it('do not affect other rules', async () => {
    const gate = await open(create())
    await gate.overrides?.put('api', 'keys', { key: 'free', action: 'ALLOW' })
    await gate.overrides?.put('api', 'keys', { key: 'bad', action: 'DENY' })
    const two = key('free', '/keys/two')
    for (const remaining of [2, 1, 0])
      expect(await gate.check(two)).toMatchObject({ allowed: true, reason: 'ALLOWED', ruleId: 'plain', remaining })
    expect(await gate.check(two)).toMatchObject({ allowed: false, reason: 'LIMITED', ruleId: 'plain' })
    expect(await gate.check(key('bad', '/keys/two'))).toMatchObject({
      reason: 'DENY_LISTED',
      bands: [{ ruleId: 'plain', remaining: 3, allowed: true }],
    })
  })

  it('expire, and report the remaining time', async () => {
    const gate = await open(create())
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    await gate.overrides?.put('api', 'keys', { key: 'bad', action: 'DENY', expiresAt })
    const { retryAfterMs, resetAt } = await gate.check(key('bad'))
    expect(retryAfterMs).toBeGreaterThanOrEqual(Date.parse(expiresAt) - Date.now() - 1)
    expect(retryAfterMs).toBeLessThanOrEqual(3_600_000)
    expect(resetAt).toBe(Date.parse(expiresAt))
    await gate.overrides?.put('api', 'keys', { key: 'bad', action: 'DENY', expiresAt: '2020-01-01T00:00:00Z' })
    expect(await gate.overrides?.get('api', 'keys', 'bad')).toBeUndefined()
    expect(await gate.overrides?.list('api', 'keys', { limit: 10 })).toEqual({ items: [], cursor: null })
  })

  it('of addresses are found in any spelling, and by the smallest range', async () => {
    const gate = await open(create())
    const put = (override: object) => gate.overrides?.put('api', 'ips', override)
    await put({ key: '10.1.2.3/8', action: 'DENY' })
    await put({ key: '10.1.0.0/16', action: 'ALLOW' })
    await put({ key: '::ffff:10.1.2.3', action: 'LIMIT', bands: [{ capacity: 7, window: '1h' }] })
    await put({ key: '2001:DB8:0:0::/32', action: 'DENY' })
    await put({ key: '2001:db8:0:42::1', action: 'ALLOW' })
    const reasons = []
    for (const clientIp of ['10.9.9.9', '10.1.9.9', '10.1.2.3', '2001:db8:1::1', '2001:db8:0:43::9', '192.0.2.1'])
      reasons.push((await gate.check({ clientIp, path: '/ips/x' })).reason)
    expect(reasons).toEqual(['DENY_LISTED', 'ALLOW_LISTED', 'ALLOWED', 'DENY_LISTED', 'ALLOW_LISTED', 'ALLOWED'])
    const { items } = (await gate.overrides?.list('api', 'ips', { limit: 10 })) ?? expect.unreachable()
    expect(items.map((item) => item.key)).toEqual([
      '10.0.0.0/8',
      '10.1.0.0/16',
      '10.1.2.3',
      '2001:db8::/32',
      '2001:db8::/56',
    ])
    expect(await gate.overrides?.delete('api', 'ips', '10.0.0.0/8')).toBe(true)
    expect((await gate.check({ clientIp: '10.9.9.9', path: '/ips/x' })).reason).toBe('ALLOWED')
  })

  it('apply to peeks, refunds, resets and waiting requests', async () => {
    const gate = await open(create())
    const bands = [{ capacity: 10, window: '1h' }]
    await gate.overrides?.put('api', 'keys', { key: 'a', action: 'LIMIT', bands })
    await gate.check(key('a'), { permits: 10 })
    expect(await gate.check(key('a'), { peek: true })).toMatchObject({ allowed: false, limit: 10, remaining: 0 })
    await gate.refund(key('a'), { permits: 4 })
    expect(await gate.check(key('a'), { peek: true })).toMatchObject({ allowed: true, remaining: 3 })
    await gate.reset({ ruleSetId: 'api', ruleId: 'keys', key: 'a' })
    expect(await gate.check(key('a'), { peek: true })).toMatchObject({ remaining: 9 })
    expect(await gate.look({ ruleSetId: 'api', ruleId: 'keys', key: 'a' })).toMatchObject([
      { limit: 10, remaining: 10 },
    ])
    await gate.overrides?.put('api', 'waiting', {
      key: 'a',
      action: 'LIMIT',
      bands: [{ capacity: 1, window: '200ms' }],
    })
    const decisions = await Promise.all([1, 2].map(() => gate.check(key('a', '/waiting/x'))))
    expect(decisions.map(({ allowed, delayMs }) => [allowed, Math.round(delayMs / 100)])).toEqual([
      [true, 0],
      [true, 2],
    ])
  })

  it('can set a starting balance, which refills from then on', async () => {
    const gate = await open(create())
    const overrides = gate.overrides ?? expect.unreachable()
    const left = async (apiKey: string) => {
      const { limit, remaining } = await gate.check(key(apiKey), { peek: true, permits: 1 })
      return [limit, remaining]
    }
    await overrides.put('api', 'keys', { key: 'moved', action: 'LIMIT', balance: 1 })
    await overrides.put('api', 'keys', { key: 'new', action: 'LIMIT', balance: 0 })
    const bands = [{ capacity: 100, window: '1h' }]
    const balanceAt = new Date(Date.now() - 36 * 60_000).toISOString()
    await overrides.put('api', 'keys', { key: 'since', action: 'LIMIT', bands, balance: 30, balanceAt })
    expect([await left('moved'), await left('new')]).toEqual([
      [2, 0],
      [2, 0],
    ])
    expect((await gate.check(key('moved'))).allowed).toBe(true)
    expect((await gate.check(key('moved'))).allowed).toBe(false)
    expect(await gate.check(key('new'))).toMatchObject({ allowed: false, reason: 'LIMITED', limit: 2, remaining: 0 })
    // 30 permits were left, 60 have been refilled, and one is taken.
    expect(await left('since')).toEqual([100, 89])
    expect(await overrides.get('api', 'keys', 'since')).toMatchObject({ balance: 30, balanceAt })
    expect(await overrides.get('api', 'keys', 'new')).toEqual({
      key: 'new',
      action: 'LIMIT',
      balance: 0,
      balanceAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
  })

  it('are listed in pages, each on one page', async () => {
    const gate = await open(create())
    const overrides = gate.overrides ?? expect.unreachable()
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of ['c', 'a', 'e', 'b', 'd']) await overrides.put('api', 'keys', { key: name, action: 'ALLOW' })
    const first = await overrides.list('api', 'keys', { limit: 2 })
    const second = await overrides.list('api', 'keys', { limit: 2, cursor: first.cursor ?? undefined })
    const third = await overrides.list('api', 'keys', { limit: 2, cursor: second.cursor ?? undefined })
    const pages = [first, second, third].map(({ items }) => items.map((item) => item.key))
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1])
    for (const page of pages) expect(page).toEqual([...page].sort())
    expect(pages.flat().sort()).toEqual(names)
    expect(third.cursor).toBeNull()
    expect((await overrides.list('api', 'keys', { limit: 9 })).items.map((item) => item.key)).toEqual(names)
    expect((await overrides.list('api', 'keys', { limit: 9, prefix: 'd' })).items).toEqual([
      { key: 'd', action: 'ALLOW' },
    ])
  })

  it('are listed 50 per page by default', async () => {
    const gate = await open(create())
    const overrides = gate.overrides ?? expect.unreachable()
    for (let i = 0; i < 51; i++) await overrides.put('api', 'keys', { key: `k${i}`, action: 'ALLOW' })
    const first = await overrides.list('api', 'keys')
    expect(first.items).toHaveLength(50)
    expect((await overrides.list('api', 'keys', { cursor: first.cursor ?? undefined })).items).toHaveLength(1)
    const refused = { code: 'FLUXGATE_ARGUMENT_INVALID' }
    for (const query of [{ limit: 0 }, { limit: -1 }, { limit: 1.5 }, { limit: '9' }, { cursor: 7 }, { prefix: 7 }])
      await expect(overrides.list('api', 'keys', query as object)).rejects.toMatchObject(refused)
  })

  it('report every validation issue with its path', async () => {
    const gate = await open(create())
    const mistakes = async (override: unknown, rule = 'keys') => {
      const error = await gate.overrides?.put('api', rule, override).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code: 'FLUXGATE_OVERRIDE_INVALID' })
      return (error as { errors: { path: string }[] }).errors.map(({ path }) => path)
    }
    expect(await mistakes({ action: 'BLOCK', expiresAt: 'soon', extra: 1 })).toEqual([
      'extra',
      'key',
      'action',
      'expiresAt',
    ])
    expect(await mistakes({ key: 'a', action: 'LIMIT' })).toEqual(['bands'])
    expect(await mistakes({ key: 'a', action: 'DENY', bands: [{ capacity: 1, window: '1s' }] })).toEqual(['bands'])
    expect(await mistakes({ key: 'a', action: 'LIMIT', bands: [{ capacity: -1, window: '1s' }] })).toEqual([
      'bands[0].capacity',
    ])
    expect(await mistakes({ key: '2001:db8::/64', action: 'DENY' }, 'ips')).toEqual(['key'])
    for (const key of ['10.0.0.0/33', '300.0.0.0/8', '10.0.0/8', '::/129', '10.0.0.0/'])
      expect(await mistakes({ key, action: 'DENY' }, 'ips')).toEqual(['key'])
    expect(await mistakes({ key: 'a', action: 'ALLOW', balance: 1 })).toEqual(['balance'])
    expect(await mistakes({ key: 'a', action: 'LIMIT', balance: -1 })).toEqual(['balance'])
    expect(await mistakes({ key: 'a', action: 'LIMIT', balance: 1, balanceAt: '2999-01-01' })).toEqual(['balanceAt'])
    expect(await mistakes({ key: 'a', action: 'DENY', balanceAt: '2020-01-01' })).toEqual(['balanceAt'])
    expect(await mistakes(null)).toHaveLength(1)
    await expect(gate.overrides?.put('api', 'none', { key: 'a', action: 'DENY' })).rejects.toThrow(
      'Rule "none" does not exist',
    )
  })

  it('apply at once to leased rules', async () => {
    const gate = await open(create())
    const leased = key('a', '/leased/x')
    await gate.check(leased)
    await gate.overrides?.put('api', 'leased', { key: 'a', action: 'DENY' })
    expect((await gate.check(leased)).reason).toBe('DENY_LISTED')
  })
})

describe('overrides in Redis', () => {
  it('need no extra Redis call, even for a key that has one', async () => {
    const gate = await open(redisStore(client, { prefix: freshPrefix(), timeoutMs: 20_000 }))
    for (const [apiKey, action] of [
      ['bad', 'DENY'],
      ['free', 'ALLOW'],
    ])
      await gate.overrides?.put('api', 'keys', { key: apiKey, action })
    await gate.check({ apiKey: 'first', path: '/keys/one' })
    const { evalsha } = await countCalls(server, ['evalsha'], async () => {
      for (const apiKey of ['free', 'bad', 'other']) await gate.check({ apiKey, path: '/keys/one' })
    })
    expect(evalsha).toBe(3)
  })

  it('are looked up once per key, until one is edited', async () => {
    const gate = await open(redisStore(client, { prefix: freshPrefix(), timeoutMs: 20_000 }))
    const limited = { action: 'LIMIT', bands: [{ capacity: 100, window: '1h' }] }
    await gate.overrides?.put('api', 'keys', { key: 'big', ...limited })
    const ask = () => Promise.all(['big', 'other'].map((apiKey) => gate.check({ apiKey, path: '/keys/one' })))
    const lookups = async () => (await countCalls(server, ['hget'], ask)).hget
    await ask()
    expect(await lookups()).toBe(0)
    await gate.overrides?.put('api', 'keys', { key: 'other', ...limited })
    expect(await lookups()).toBe(1)
    expect(await lookups()).toBe(0)
    // After several missed edits, nothing in the cache is trusted.
    for (const key of ['third', 'fourth']) await gate.overrides?.put('api', 'keys', { key, ...limited })
    expect(await lookups()).toBe(2)
    expect(await lookups()).toBe(0)
    expect((await ask()).map(({ limit }) => limit)).toEqual([100, 100])
  })

  it('change for all processes: at once for a key with an override, and within a second for ranges', async () => {
    const prefix = freshPrefix()
    const [one, two] = await Promise.all([1, 2].map(() => open(redisStore(client, { prefix, timeoutMs: 20_000 }))))
    const check = async (gate: FluxGate | undefined, apiKey: string) =>
      (await gate?.check({ apiKey, path: '/keys/one' }))?.reason
    expect(await check(two, 'a')).toBe('ALLOWED')
    await one?.overrides?.put('api', 'keys', { key: 'a', action: 'DENY' })
    expect(await check(two, 'a')).toBe('DENY_LISTED')
    await one?.overrides?.put('api', 'keys', { key: 'b', action: 'ALLOW' })
    expect(await check(two, 'b')).toBe('ALLOW_LISTED')
    await one?.overrides?.put('api', 'keys', { key: 'b', action: 'LIMIT', bands: [{ capacity: 1, window: '1h' }] })
    expect(await check(two, 'b')).toBe('ALLOWED')
    await one?.overrides?.delete('api', 'keys', 'b')
    expect(await two?.check({ apiKey: 'b', path: '/keys/one' })).toMatchObject({ limit: 2 })
    const ip = { clientIp: '10.0.0.1', path: '/ips/x' }
    await two?.check(ip)
    await one?.overrides?.put('api', 'ips', { key: '10.0.0.0/8', action: 'DENY' })
    await expect.poll(async () => (await two?.check(ip))?.reason).toBe('DENY_LISTED')
  })

  const seed = randomSeed()
  it(`are consistent in every process over a random history of edits (seed ${seed})`, async () => {
    const random = seededRandom(seed)
    const below = (end: number) => Math.floor(random() * end)
    const prefix = freshPrefix()
    const gates = await Promise.all([1, 2, 3].map(() => open(redisStore(client, { prefix, timeoutMs: 20_000 }))))
    const anyGate = () => gates[below(3)] ?? expect.unreachable()
    const limits = new Map<string, number | 'ALLOW_LISTED' | 'DENY_LISTED'>()
    for (let step = 0; step < 200; step++) {
      for (let edits = below(3); edits > 0; edits--) {
        const [key, what, capacity] = [`key-${below(12)}`, below(4), 3 + step]
        const overrides = anyGate().overrides ?? expect.unreachable()
        if (what === 0) await overrides.delete('api', 'keys', key)
        else if (what === 1) await overrides.put('api', 'keys', { key, action: 'ALLOW' })
        else if (what === 2) await overrides.put('api', 'keys', { key, action: 'DENY' })
        else await overrides.put('api', 'keys', { key, action: 'LIMIT', bands: [{ capacity, window: '1h' }] })
        limits.set(key, ([2, 'ALLOW_LISTED', 'DENY_LISTED', capacity] as const)[what] as number)
      }
      const asked = Array.from({ length: 8 }, () => ({ gate: anyGate(), apiKey: `key-${below(12)}` }))
      const reported = await Promise.all(
        asked.map(async ({ gate, apiKey }) => {
          const { reason, limit } = await gate.check({ apiKey, path: '/keys/one' }, { peek: true })
          return reason === 'ALLOWED' ? limit : reason
        }),
      )
      expect(reported, `step ${step}`).toEqual(asked.map(({ apiKey }) => limits.get(apiKey) ?? 2))
    }
  })

  it('apply to cached rejections within a second', async () => {
    const prefix = freshPrefix()
    const gate = await open(redisStore(client, { prefix, timeoutMs: 20_000 }))
    const other = await open(redisStore(client, { prefix, timeoutMs: 20_000 }))
    const asked = { apiKey: 'a', path: '/keys/one' }
    for (let i = 0; i < 3; i++) await gate.check(asked)
    await other.overrides?.put('api', 'keys', { key: 'a', action: 'ALLOW' })
    await expect.poll(async () => (await gate.check(asked)).reason).toBe('ALLOW_LISTED')
  })

  it('that a process has cached apply during an outage', async () => {
    const own = await startRedis()
    const gate = await createFluxGate({ rules: ruleSets, store: { uri: own.uri, timeoutMs: 20_000 } })
    try {
      const overrides = gate.overrides ?? expect.unreachable()
      const bands = [{ capacity: 50, window: '1h' }]
      await overrides.put('api', 'keys', { key: 'big', action: 'LIMIT', bands })
      await overrides.put('api', 'keys', { key: 'free', action: 'ALLOW' })
      await overrides.put('api', 'keys', { key: 'bad', action: 'DENY' })
      await overrides.put('api', 'keys', { key: 'unseen', action: 'DENY' })
      await overrides.put('api', 'ips', { key: '10.0.0.0/8', action: 'DENY' })
      const ask = async (apiKey: string, permits = 1) => {
        const decision = await gate.check({ apiKey, path: '/keys/one' }, { ruleSetId: 'api', permits })
        return [decision.degraded, decision.reason, decision.limit]
      }
      for (const name of ['big', 'free', 'bad']) expect((await ask(name))[0]).toBe(false)
      await gate.check({ clientIp: '10.0.0.1', path: '/ips/x' }, { ruleSetId: 'api' })
      await own.stop()
      expect(await ask('big')).toEqual([true, 'ALLOWED', 50])
      expect(await ask('free')).toEqual([true, 'ALLOW_LISTED', -1])
      // The same request as before would be a cached rejection.
      expect((await ask('bad', 2)).slice(0, 2)).toEqual([true, 'DENY_LISTED'])
      expect(await ask('unseen')).toEqual([true, 'ALLOWED', 2])
      const ip = await gate.check({ clientIp: '10.9.9.9', path: '/ips/x' }, { ruleSetId: 'api' })
      expect([ip.degraded, ip.reason]).toEqual([true, 'DENY_LISTED'])
    } finally {
      await gate.close()
      await own.stop()
    }
  })
})
