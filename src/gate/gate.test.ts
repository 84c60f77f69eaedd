import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { describe, expect, it } from 'vitest'
import type { RuleInput, RuleSetInput } from '../rules/schema/input.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGateOptions } from './options.js'

const start = 1_800_000_000_000

const rule = (id: string, capacity: number, given: Partial<RuleInput> = {}): RuleInput => ({
  id,
  bands: [{ capacity, window: '1m' }],
  ...given,
})

const gateOf = (rules: readonly RuleInput[], given: Partial<RuleSetInput> & Partial<FluxGateOptions> = {}) => {
  const { strategy, ...options } = given
  const set: RuleSetInput = { id: 'api', rules, ...(strategy && { strategy }) }
  return createFluxGate({ rules: set, clock: manualClock(start), ...options })
}

describe('rule selection', () => {
  it('applies all matching rules; the most restrictive band decides', async () => {
    const gate = await gateOf([rule('wide', 100), rule('narrow', 3)])
    expect(await gate.check({ clientIp: '10.0.0.1' })).toMatchObject({
      allowed: true,
      ruleSetId: 'api',
      ruleId: 'narrow',
      remaining: 2,
      bands: [{ ruleId: 'narrow' }, { ruleId: 'wide', remaining: 99 }],
    })
  })

  it('reports the band with the longest wait of a rejection, and charges nothing', async () => {
    const gate = await gateOf([rule('minute', 2), rule('hour', 2, { bands: [{ capacity: 2, window: '1h' }] })])
    const context = { clientIp: '10.0.0.1' }
    for (let i = 0; i < 2; i++) await gate.check(context)
    expect(await gate.check(context)).toMatchObject({ allowed: false, ruleId: 'hour', retryAfterMs: 1_800_000 })
    expect((await gate.check({ clientIp: '10.0.0.2' })).allowed).toBe(true)
  })

  it('applies only the rule with the highest priority under strategy first', async () => {
    const gate = await gateOf(
      [rule('plan', 1), rule('premium', 100, { priority: 10, when: { 'attributes.tier': 'premium' } })],
      { strategy: 'first' },
    )
    const decide = (tier: string) => gate.check({ clientIp: '10.0.0.1', attributes: { tier } })
    expect((await decide('premium')).bands.map(({ ruleId }) => ruleId)).toEqual(['premium'])
    expect((await decide('free')).bands.map(({ ruleId }) => ruleId)).toEqual(['plan'])
  })

  it('continues to the next rule under strategy first after a shadow rule or a rule without a key', async () => {
    const gate = await gateOf(
      [
        rule('trial', 1, { priority: 3, mode: 'SHADOW' }),
        rule('user', 5, { priority: 2, limitScope: 'USER_ID', onMissingKey: 'SKIP' }),
        rule('rest', 2, { priority: 1 }),
      ],
      { strategy: 'first' },
    )
    const { bands, ruleId } = await gate.check({ clientIp: '10.0.0.1' })
    expect(bands.map((band) => band.ruleId)).toEqual(['trial', 'rest'])
    expect(ruleId).toBe('rest')
  })

  it.each(['/api/users', '/api//users', '/api/./users', '/api/users/', '/api/%75sers'])(
    'limits %s like /api/users',
    async (path) => {
      const gate = await gateOf([rule('users', 1, { path: '/api/users' })])
      await gate.check({ clientIp: '10.0.0.1', path: '/api/users' })
      expect((await gate.check({ clientIp: '10.0.0.1', path })).allowed).toBe(false)
    },
  )

  it('reports NO_RULE and NO_RULE_SET', async () => {
    const gate = await gateOf([rule('api', 1, { path: '/api/**' })])
    expect(await gate.check({ path: '/' })).toMatchObject({
      allowed: true,
      reason: 'NO_RULE',
      remaining: -1,
      ruleId: null,
    })
    expect(await gate.check({}, { ruleSetId: 'nope' })).toMatchObject({
      allowed: true,
      reason: 'NO_RULE_SET',
      ruleSetId: 'nope',
    })
    const strict = await gateOf([rule('api', 1, { path: '/api/**' })], { missingRuleBehavior: 'DENY' })
    expect(await strict.check({ path: '/' })).toMatchObject({ allowed: false, reason: 'NO_RULE', retryAfterMs: null })
    expect(await strict.check({}, { ruleSetId: 'nope' })).toMatchObject({ allowed: false, reason: 'NO_RULE_SET' })
  })
})

describe('key resolution', () => {
  it.each([
    ['GLOBAL', {}, {}, false],
    ['IP', { clientIp: '10.0.0.1' }, { clientIp: '10.0.0.2' }, true],
    ['IP', { clientIp: '2001:db8:0:1::1' }, { clientIp: '2001:db8:0:ff::2' }, false],
    ['IP', { clientIp: '::ffff:1.2.3.4' }, { clientIp: '1.2.3.4' }, false],
    ['USER_ID', { userId: 'a' }, { userId: 'b' }, true],
    ['API_KEY', { apiKey: 'a' }, { apiKey: 'b' }, true],
  ] as const)('%s: %o and %o', async (limitScope, first, second, apart) => {
    const gate = await gateOf([rule('rule', 1, { limitScope })])
    await gate.check(first)
    expect((await gate.check(second)).allowed).toBe(apart)
  })

  it('supports composite fields without collisions, custom fields, and named resolvers', async () => {
    const gate = await gateOf(
      [
        rule('pair', 1, { path: '/pair', limitScope: 'COMPOSITE', compositeKeyFields: ['USER_ID', 'attributes.org'] }),
        rule('field', 1, { path: '/field/{id}', limitScope: 'CUSTOM', keyField: 'path.id' }),
        rule('named', 1, { path: '/named', limitScope: 'CUSTOM', keyResolver: 'tenant' }),
      ],
      { keyResolvers: { tenant: (_rule, { headers }) => headers?.['x-tenant']?.toString() } },
    )
    const decide = async (context: object): Promise<boolean> => (await gate.check(context)).allowed
    expect(await decide({ path: '/pair', userId: 'a:b', attributes: { org: 'c' } })).toBe(true)
    expect(await decide({ path: '/pair', userId: 'a', attributes: { org: 'b:c' } })).toBe(true)
    expect(await decide({ path: '/field/7' })).toBe(true)
    expect(await decide({ path: '/field/8' })).toBe(true)
    expect(await decide({ path: '/field/7' })).toBe(false)
    expect(await decide({ path: '/named', headers: { 'x-tenant': 'one' } })).toBe(true)
    expect(await decide({ path: '/named', headers: { 'x-tenant': 'one' } })).toBe(false)
  })

  it('rejects rules with an unregistered resolver', async () => {
    const gate = gateOf([rule('named', 1, { limitScope: 'CUSTOM', keyResolver: 'tenant' })])
    await expect(gate).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      errors: [{ path: 'ruleSets[0].rules[0].keyResolver' }],
    })
  })

  it('applies onMissingKey to requests without an identity', async () => {
    const decide = async (onMissingKey: 'ANONYMOUS' | 'SKIP' | 'DENY') => {
      const gate = await gateOf([rule('user', 1, { limitScope: 'USER_ID', onMissingKey })])
      await gate.check({})
      return gate.check({})
    }
    expect(await decide('ANONYMOUS')).toMatchObject({ allowed: false, reason: 'LIMITED', key: 'anonymous' })
    expect(await decide('SKIP')).toMatchObject({ allowed: true, reason: 'NO_RULE' })
    expect(await decide('DENY')).toMatchObject({
      allowed: false,
      reason: 'MISSING_KEY',
      ruleId: 'user',
      retryAfterMs: null,
    })
  })
})

describe('shadow rules', () => {
  it('count and report, but never reject', async () => {
    const gate = await gateOf([rule('trial', 1, { mode: 'SHADOW' })])
    expect(await gate.check({})).toMatchObject({ allowed: true, reason: 'ALLOWED', remaining: -1, ruleId: null })
    expect((await gate.check({})).bands).toMatchObject([
      { ruleId: 'trial', shadow: true, allowed: false, retryAfterMs: 60_000 },
    ])
    expect((await gate.check({})).allowed).toBe(true)
  })
})

describe('permits, peek, refund and reset', () => {
  it('work with a request context', async () => {
    const gate = await gateOf([rule('rule', 10, { permits: 2 })])
    const context = { clientIp: '10.0.0.1' }
    expect((await gate.check(context, { permits: 3 })).remaining).toBe(4)
    expect((await gate.check(context, { peek: true })).remaining).toBe(2)
    await gate.refund(context, { permits: 2 })
    expect((await gate.check(context, { peek: true })).remaining).toBe(6)
    await gate.reset({ ruleSetId: 'api', ruleId: 'rule', key: '10.0.0.1' })
    expect((await gate.check(context, { peek: true })).remaining).toBe(8)
    await expect(gate.check(context, { permits: -1 })).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })

  it('reset one rule without affecting others', async () => {
    const gate = await gateOf([rule('one', 1, { path: '/one' }), rule('two', 1, { path: '/two' })])
    for (const path of ['/one', '/two']) await gate.check({ path })
    await gate.reset({ ruleSetId: 'api', ruleId: 'one' })
    expect((await gate.check({ path: '/one' })).allowed).toBe(true)
    expect((await gate.check({ path: '/two' })).allowed).toBe(false)
    await gate.reset({ ruleSetId: 'api' })
    expect((await gate.check({ path: '/two' })).allowed).toBe(true)
    await expect(gate.reset({ ruleSetId: 'api', ruleId: 'three' })).rejects.toThrow(/Rule "three" does not exist/)
  })

  it('look at the buckets of one key without charging', async () => {
    const gate = await gateOf([rule('narrow', 3)])
    const where = { ruleSetId: 'api', ruleId: 'narrow', key: '10.0.0.1' }
    for (const remaining of [3, 3]) expect(await gate.look(where)).toMatchObject([{ limit: 3, remaining }])
    await gate.check({ clientIp: '10.0.0.1' }, { permits: 3 })
    expect(await gate.look(where)).toMatchObject([{ limit: 3, remaining: 0, resetAt: start + 60_000 }])
    expect(await gate.look({ ...where, key: '10.0.0.2' })).toMatchObject([{ remaining: 3 }])
    await expect(gate.look({ ...where, ruleId: 'wide' })).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
  })
})

describe('retired buckets', () => {
  it('are freed at once when a rule is reset, edited or removed, even if they are exhausted', async () => {
    const clock = manualClock(start)
    const store = memoryStore({ maxKeys: 3, clock })
    const document: { id: string; rules: RuleInput[] } = {
      id: 'api',
      rules: [rule('user', 1, { limitScope: 'USER_ID' })],
    }
    const gate = await createFluxGate({ rules: document, store, clock })
    const all = async (users: string) => {
      const allowed = []
      for (const userId of users) allowed.push((await gate.check({ userId })).allowed)
      return allowed
    }
    expect(await all('abc')).toEqual([true, true, true])
    await gate.reset({ ruleSetId: 'api' })
    expect(await all('def')).toEqual([true, true, true])
    document.rules = [rule('other', 1, { limitScope: 'USER_ID' })]
    await gate.reload()
    expect(await all('abc')).toEqual([true, true, true])
    expect(store.size).toBe(3)
  })

  it('stay new when an edit is reverted', async () => {
    const document: { id: string; rules: RuleInput[] } = { id: 'api', rules: [rule('rule', 1)] }
    const gate = await createFluxGate({ rules: document, clock: manualClock(start) })
    const edited = async (capacity: number): Promise<boolean> => {
      document.rules = [rule('rule', capacity)]
      await gate.reload()
      return (await gate.check({})).allowed
    }
    expect([await edited(1), await edited(2), await edited(1)]).toEqual([true, true, true])
  })
})

describe('invalid contexts', () => {
  it.each([[undefined], [null], ['/'], [{ path: 5 }], [{ method: {} }], [{ clientIp: 7 }]])(
    'rejects %o',
    async (context) => {
      const gate = await gateOf([rule('rule', 1, { when: { clientIp: '10.0.0.0/8' } })])
      await expect(gate.check(context as never)).rejects.toMatchObject({ code: 'FLUXGATE_ARGUMENT_INVALID' })
    },
  )

  it.each([[new Headers({ 'x-app': 'ios' })], [new Map([['x-app', 'ios']])], [['x-app', 'ios']], ['x-app: ios']])(
    'rejects %o as headers if a rule reads a header',
    async (headers) => {
      const gate = await gateOf([rule('rule', 1, { limitScope: 'CUSTOM', keyField: 'header.x-app' })])
      await expect(gate.check({ headers: headers as never })).rejects.toThrow(/Object.fromEntries\(headers\)/)
      expect(await gate.check({ headers: { 'X-App': 'ios' } })).toMatchObject({ key: 'ios' })
      expect(await gate.check({ headers: {} })).toMatchObject({ key: 'anonymous' })
    },
  )

  it('treats null as missing', async () => {
    const gate = await gateOf([rule('rule', 1)])
    const context = { path: null, method: null, clientIp: null, userId: null, headers: null, attributes: null }
    expect(await gate.check(context as never)).toMatchObject({ allowed: true, key: 'anonymous' })
  })
})

describe('options given in code', () => {
  it.each([
    [{ onStoreFailure: 'deny' }, 'onStoreFailure'],
    [{ missingRuleBehaviour: 'DENY' }, 'missingRuleBehaviour'],
    [{ localShare: 0 }, 'localShare'],
    [{ clock: Date.now }, 'clock'],
    [{ ipv6Prefix: 56.5 }, 'ipv6Prefix'],
    [{ reload: { strategy: 'watch' } }, 'reload.strategy'],
    [{ waitForRefill: { maxConcurrentWaits: 0.5 } }, 'waitForRefill.maxConcurrentWaits'],
    [{ waitForRefill: { maxWaitMs: Number.POSITIVE_INFINITY } }, 'waitForRefill.maxWaitMs'],
  ])('rejects %o as in a file', async (options, path) => {
    await expect(gateOf([rule('rule', 1)], options as never)).rejects.toMatchObject({
      code: 'FLUXGATE_CONFIG_INVALID',
      errors: [{ path }],
    })
  })

  it('accepts durations in the notation of a file', async () => {
    const waiting = rule('rule', 1, { onLimitExceed: 'WAIT_FOR_REFILL' })
    const gate = await gateOf([waiting], { waitForRefill: { maxWaitTime: '59s' }, reload: { pollingInterval: '1m' } })
    await gate.check({})
    expect(await gate.check({})).toMatchObject({ allowed: false, retryAfterMs: 1000 })
  })

  it.each([
    ['ioredis', () => new Redis({ lazyConnect: true })],
    ['node-redis', () => createClient()],
  ])('rejects a client of %s as store, and explains how to wrap it', async (_, client) => {
    await expect(gateOf([rule('rule', 1)], { store: client() as never })).rejects.toThrow(
      "store must be a BucketStore; received a Redis client. Wrap the client: redisStore(client) from 'fluxgate-js/redis'.",
    )
  })

  it('rejects missing options, an invalid store, an unknown event and an invalid listener', async () => {
    await expect(createFluxGate(undefined as never)).rejects.toMatchObject({ code: 'FLUXGATE_CONFIG_INVALID' })
    await expect(gateOf([], { store: {} as never })).rejects.toMatchObject({ code: 'FLUXGATE_CONFIG_INVALID' })
    const gate = await gateOf([])
    expect(() => gate.on('nope' as never, () => {})).toThrow(/Unknown event "nope"/)
    expect(() => gate.on('decision', 5 as never)).toThrow('The listener must be a function; received number.')
  })
})

describe('events and close', () => {
  it('emits each decision until the listener is removed', async () => {
    const gate = await gateOf([rule('rule', 1)])
    const heard: boolean[] = []
    const stop = gate.on('decision', ({ decision }) => heard.push(decision.allowed))
    await gate.check({})
    await gate.check({})
    stop()
    await gate.check({})
    expect(heard).toEqual([true, false])
  })

  it('emits nothing for a load that was in flight when the gate was closed', async () => {
    let fail = (): void => {}
    const loads = [
      async () => [],
      () => new Promise<never>((_, reject) => (fail = () => reject(new Error('the connection was closed')))),
    ]
    const provider = { source: 'a slow table', load: () => loads.shift()?.() ?? Promise.resolve([]) }
    const gate = await createFluxGate({ rules: provider, reload: { strategy: 'NONE' } })
    const heard: unknown[] = []
    gate.on('reload', (event) => heard.push(event))
    const reload = gate.reload()
    await gate.close()
    fail()
    await expect(reload).rejects.toMatchObject({ code: 'FLUXGATE_RULES_UNREADABLE' })
    expect(heard).toEqual([])
  })

  it('rejects calls after close, which may be called twice', async () => {
    const gate = await gateOf([rule('rule', 1)])
    await gate.close()
    await gate.close()
    await expect(gate.check({})).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
  })
})
