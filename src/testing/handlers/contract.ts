import assert from 'node:assert/strict'
import { FluxGateError } from '../../core/errors.js'
import type { TestRunner } from '../bucket-store-contract.js'
import { manualClock } from '../manual-clock.js'
import { type HandlerFactory, perUser, type WithRules } from './fixtures.js'
import { waitingContract } from './waiting.js'

const startMs = Date.UTC(2026, 0, 31, 12)

/**
 * Registers the tests that every handler must pass, whether it decides in this process or asks a server.
 *
 * @example
 * describe('myHandler', () =>
 *   handlerContract(it, async ({ ruleSets, clock }) => {
 *     const gate = await createFluxGate({ rules: { ruleSets }, clock })
 *     return { handler: gate, close: () => gate.close() }
 *   }))
 */
export function handlerContract(it: TestRunner, create: HandlerFactory): void {
  const withRules: WithRules = (title, ruleSets, test) =>
    it(title, async () => {
      const clock = manualClock(startMs)
      const { handler, close } = await create({ ruleSets, clock })
      try {
        await test(handler, clock)
      } finally {
        await close()
      }
    })

  withRules('returns every field of a decision', [{ id: 'api', rules: [perUser] }], async (handler, clock) => {
    const common = { ruleId: 'per-user', key: 'ann', limit: 2 }
    const band = { ...common, label: 'min', shadow: false, windowMs: 60_000 }
    const decision = { ...common, ruleSetId: 'api', band: 'min', policy: 'REJECT', degraded: false, delayMs: 0 }
    const first = { remaining: 1, resetAt: startMs + 30_000, allowed: true, retryAfterMs: 0 }
    const allowed = { ...decision, ...first, reason: 'ALLOWED', decidedAt: startMs, bands: [{ ...band, ...first }] }
    assert.deepEqual(await handler.check({ userId: 'ann' }), allowed)
    await handler.check({ userId: 'ann' })
    clock.advance(10_000)
    const third = { remaining: 0, resetAt: startMs + 60_000, allowed: false, retryAfterMs: 20_000 }
    const decidedAt = startMs + 10_000
    const rejected = { ...decision, ...third, reason: 'LIMITED', decidedAt, bands: [{ ...band, ...third }] }
    assert.deepEqual(await handler.check({ userId: 'ann' }), rejected)
    assert.equal((await handler.check({ userId: 'bob' })).allowed, true)
    clock.advance(20_000)
    assert.equal((await handler.check({ userId: 'ann' })).allowed, true)
  })

  withRules('peeks without charging', [{ id: 'api', rules: [perUser] }], async (handler) => {
    for (let i = 0; i < 5; i++)
      assert.equal((await handler.check({ userId: 'ann' }, { peek: true, permits: 2 })).allowed, true)
    assert.equal((await handler.check({ userId: 'ann' })).remaining, 1)
  })

  withRules('charges the requested number of permits', [{ id: 'api', rules: [perUser] }], async (handler) => {
    const impossible = await handler.check({ userId: 'ann' }, { permits: 3 })
    assert.deepEqual([impossible.reason, impossible.retryAfterMs], ['IMPOSSIBLE', null])
    assert.equal((await handler.check({ userId: 'ann' }, { permits: 2 })).remaining, 0)
    assert.equal((await handler.check({ userId: 'ann' })).allowed, false)
  })

  withRules('refunds permits', [{ id: 'api', rules: [perUser] }], async (handler) => {
    await handler.check({ userId: 'ann' }, { permits: 2 })
    await handler.refund({ userId: 'ann' }, { ruleSetId: 'api', permits: 1 })
    assert.equal((await handler.check({ userId: 'ann' })).allowed, true)
    assert.equal((await handler.check({ userId: 'ann' })).allowed, false)
    await handler.refund({ userId: 'ann' })
    assert.equal((await handler.check({ userId: 'ann' })).allowed, true)
  })

  withRules(
    'counts the key of the context in place of the scope',
    [{ id: 'api', rules: [{ ...perUser, onMissingKey: 'DENY' }] }],
    async (handler) => {
      const keyOf = async (context: object): Promise<unknown> => {
        const { key, reason } = await handler.check(context)
        return key ?? reason
      }
      assert.equal(await keyOf({ userId: 'ann' }), 'ann')
      assert.equal(await keyOf({ userId: 'ann', key: 'tenant' }), 'tenant')
      assert.equal(await keyOf({ userId: 'ann', key: '' }), 'MISSING_KEY')
      await handler.refund({ key: 'tenant' })
      assert.equal((await handler.check({ key: 'tenant' }, { permits: 2, peek: true })).allowed, true)
    },
  )

  const conditions = [
    { id: 'method', method: ['POST'], path: '/orders/{id}', when: { 'path.id': '7' } },
    { id: 'header', when: { 'header.x-app': ['ios', 'android'] } },
    { id: 'attribute', when: { 'attributes.tier': 'premium' } },
    { id: 'address', when: { clientIp: '10.0.0.0/8' } },
    { id: 'key', limitScope: 'API_KEY', onMissingKey: 'SKIP' },
  ].map((rule) => ({ ...rule, bands: [{ capacity: 10, window: '1m' }] }))

  withRules(
    'evaluates method, path, headers, attributes, address and API key',
    [{ id: 'api', rules: conditions }],
    async (handler) => {
      const rulesOf = async (context: object): Promise<string[]> =>
        (await handler.check(context)).bands.map(({ ruleId }) => ruleId).sort()
      assert.deepEqual(await rulesOf({ method: 'POST', path: '//orders/%37/' }), ['method'])
      assert.deepEqual(await rulesOf({ method: 'GET', path: '/orders/7' }), [])
      assert.deepEqual(await rulesOf({ headers: { 'x-app': 'ios' } }), ['header'])
      assert.deepEqual(await rulesOf({ headers: { 'x-app': 'web' } }), [])
      assert.deepEqual(await rulesOf({ attributes: { tier: 'premium' } }), ['attribute'])
      assert.deepEqual(await rulesOf({ clientIp: '10.1.2.3' }), ['address'])
      assert.deepEqual(await rulesOf({ apiKey: '한국어 "🎉"' }), ['key'])
      const everything = { method: 'POST', path: '/orders/7', headers: { 'x-app': 'ios' }, clientIp: '10.0.0.1' }
      const context = { ...everything, attributes: { tier: 'premium' }, apiKey: 'k' }
      assert.deepEqual(await rulesOf(context), ['address', 'attribute', 'header', 'key', 'method'])
    },
  )

  withRules(
    'returns the reason if no rule applies or the key is missing',
    [
      { id: 'api', rules: [{ ...perUser, path: '/api/**', onMissingKey: 'DENY' }] },
      { id: 'web', rules: [] },
    ],
    async (handler) => {
      const reasonOf = async (context: object, ruleSetId?: string): Promise<unknown[]> => {
        const { reason, allowed, remaining, ruleSetId: found } = await handler.check(context, { ruleSetId })
        return [reason, allowed, remaining, found]
      }
      assert.deepEqual(await reasonOf({ path: '/' }, 'api'), ['NO_RULE', true, -1, 'api'])
      assert.deepEqual(await reasonOf({}, 'web'), ['NO_RULE', true, -1, 'web'])
      assert.deepEqual(await reasonOf({}, 'unknown'), ['NO_RULE_SET', true, -1, 'unknown'])
      assert.deepEqual(await reasonOf({}), ['NO_RULE_SET', true, -1, null])
      assert.deepEqual(await reasonOf({ path: '/api/x' }, 'api'), ['MISSING_KEY', false, 0, 'api'])
    },
  )

  withRules(
    'charges all rules that apply, or none, and never rejects because of a SHADOW rule',
    [
      {
        id: 'api',
        rules: [
          { id: 'wide', limitScope: 'GLOBAL', bands: [{ label: 'w', capacity: 100, window: '1h' }] },
          { ...perUser, bands: [{ label: 'a', capacity: 5, window: '1m' }] },
          { id: 'watch', mode: 'SHADOW', limitScope: 'GLOBAL', bands: [{ label: 's', capacity: 1, window: '1h' }] },
        ],
      },
    ],
    async (handler) => {
      const results = []
      for (let i = 0; i < 20; i++) results.push(await handler.check({ userId: 'ann' }))
      assert.equal(results.filter(({ allowed }) => allowed).length, 5)
      const { bands, ruleId } = results[19] ?? assert.fail()
      assert.equal(ruleId, 'per-user')
      assert.equal(bands.find((band) => band.ruleId === 'wide')?.remaining, 95)
      const watch = bands.find((band) => band.ruleId === 'watch')
      assert.deepEqual([watch?.allowed, watch?.shadow], [false, true])
    },
  )

  withRules(
    'decides simultaneous checks separately, in the order of the calls',
    [{ id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [{ capacity: 1_500, window: '1h' }] }] }],
    async (handler) => {
      const decisions = await Promise.all(Array.from({ length: 2_500 }, () => handler.check({ path: '/x' })))
      const remaining = decisions.slice(0, 1_500).map((decision) => decision.remaining)
      assert.deepEqual(
        remaining,
        [...remaining].sort((a, b) => b - a),
      )
      assert.deepEqual([remaining[0], remaining[1_499]], [1_499, 0])
      assert.ok(decisions.every(({ allowed }, index) => allowed === index < 1_500))
    },
  )

  waitingContract(withRules)

  withRules('rejects invalid arguments', [{ id: 'api', rules: [perUser] }], async (handler) => {
    const wrong = async (work: () => Promise<unknown>): Promise<void> =>
      assert.rejects(work, (error) => error instanceof FluxGateError && error.code === 'FLUXGATE_ARGUMENT_INVALID')
    for (const permits of [-1, 1.5, Number.NaN, 1e10, null as never]) {
      await wrong(async () => handler.check({ userId: 'ann' }, { permits }))
      await wrong(async () => handler.refund({ userId: 'ann' }, { permits }))
    }
    for (const requests of [-1, 1.5, Number.NaN, 1e10, '1' as never])
      await wrong(async () => handler.check({ userId: 'ann' }, { costs: { requests } }))
    await wrong(async () => handler.check({ userId: 'ann' }, { costs: [1] as never }))
    await wrong(async () => handler.check({ userId: 'ann' }, { permits: 1, costs: { requests: 2 } }))
    await wrong(async () => handler.check(undefined as never))
    await wrong(async () => handler.check({ path: 7 as never }))
    assert.equal((await handler.check({ userId: 'ann' }, { permits: 0 })).remaining, 2)
  })

  withRules('rejects costs that no rule charges', [{ id: 'api', rules: [perUser] }], async (handler) => {
    const isUnknown = (error: unknown): boolean =>
      error instanceof FluxGateError && error.code === 'FLUXGATE_COST_UNKNOWN'
    const options = { costs: { tokns: 1 } }
    // In the same turn, so that a handler that asks a server sends them together.
    const before = handler.check({ userId: 'ann' })
    await assert.rejects(handler.check({ userId: 'ann' }, options), isUnknown)
    await assert.rejects(handler.refund({ userId: 'ann' }, options), isUnknown)
    assert.equal((await before).remaining, 1)
  })
}
