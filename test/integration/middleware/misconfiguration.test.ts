/** Likely misconfigurations: errors where they are known at creation, otherwise one warning and a counter. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { CheckOptions } from '../../../src/core/handler.js'
import type { RequestContext } from '../../../src/core/request-context.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter, type WaitOptions } from '../../../src/gate/limiter/create-limiter.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import { rateLimit as fetchLimit } from '../../../src/middleware/fetch.js'
import { rateLimit as honoLimit } from '../../../src/middleware/hono.js'
import { rateLimit } from '../../../src/middleware/node.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { parseRuleSets } from '../../../src/rules/schema/parse-rules.js'

const setOf = (id: string, rule: Partial<RuleInput> = {}) => ({
  id,
  rules: [{ id: 'r', bands: [{ capacity: 5, window: '1m' }], ...rule }],
})

const newLogger = () => ({ warn: vi.fn<(message: string, fields: { code: string }) => void>() })

async function open(options: FluxGateOptions) {
  const logger = newLogger()
  const gate = await createFluxGate({ logger, ...options })
  onTestFinished(() => gate.close())
  return { gate, logged: () => logger.warn.mock.calls.map(([message, { code }]) => `${code} ${message}`) }
}

describe('rule sets that do not exist', () => {
  it('are an error as the default of rules that cannot change', async () => {
    await expect(open({ rules: [setOf('api'), setOf('web')], defaultRuleSetId: 'apis' })).rejects.toMatchObject({
      code: 'FLUXGATE_RULE_SET_UNKNOWN',
      message: 'defaultRuleSetId: Rule set "apis" does not exist. Existing: "api", "web".',
    })
  })

  it('are a warning as the default of rules that can change', async () => {
    const rules = { source: 'a test', load: async () => parseRuleSets([setOf('api')]) }
    const { gate, logged } = await open({ rules, defaultRuleSetId: 'apis' })
    expect(logged()).toEqual([
      'FLUXGATE_RULE_SET_UNKNOWN defaultRuleSetId: Rule set "apis" does not exist. Existing: "api". See docs/reference/errors.md.',
    ])
    expect(gate.warnings.counts).toEqual({ FLUXGATE_RULE_SET_UNKNOWN: 1 })
  })

  it('are one warning in checks, and counted each time', async () => {
    const { gate, logged } = await open({ rules: setOf('api') })
    for (const ruleSetId of ['apis', 'apis', 'other'])
      expect((await gate.check({ clientIp: '192.0.2.1', path: '/' }, { ruleSetId })).reason).toBe('NO_RULE_SET')
    expect(logged()).toEqual([
      'FLUXGATE_RULE_SET_UNKNOWN Rule set "apis" does not exist. Existing: "api". See docs/reference/errors.md.',
    ])
    expect(gate.warnings.counts).toEqual({ FLUXGATE_RULE_SET_UNKNOWN: 3 })
  })

  it('are an error in a middleware', async () => {
    const { gate } = await open({ rules: [setOf('api'), setOf('web')] })
    expect(() => rateLimit({ gate, ruleSetId: 'apis' })).toThrow(
      'Options of rateLimit: Rule set "apis" does not exist. Existing: "api", "web".',
    )
    expect(() => rateLimit({ gate, ruleSetId: 'api' })).not.toThrow()
  })
})

describe('several rule sets without a default', () => {
  it('are an error in a middleware without ruleSetId', async () => {
    const { gate } = await open({ rules: [setOf('api'), setOf('web')] })
    expect(() => rateLimit({ gate })).toThrow(
      expect.objectContaining({
        code: 'FLUXGATE_RULE_SET_UNKNOWN',
        message:
          'Options of rateLimit: No rule set applies: no ruleSetId is given, and no rule set is the default. Existing: "api", "web". Set ruleSetId or defaultRuleSetId, or call one rule set "default".',
      }),
    )
    const { gate: withDefault } = await open({ rules: [setOf('api'), setOf('web')], defaultRuleSetId: 'web' })
    expect(() => rateLimit({ gate: withDefault })).not.toThrow()
  })

  it('are a warning in checks without ruleSetId', async () => {
    const { gate, logged } = await open({ rules: [setOf('api'), setOf('web')] })
    await gate.check({ clientIp: '192.0.2.1', path: '/' })
    expect(logged()).toEqual([expect.stringContaining('No rule set applies: no ruleSetId is given')])
  })
})

describe('unknown fields and options', () => {
  it('of a context are one warning that names the field', async () => {
    const { gate, logged } = await open({ rules: setOf('api') })
    for (let i = 0; i < 2; i++) await gate.check({ ip: '192.0.2.1', path: '/' } as RequestContext)
    expect(logged()).toEqual([
      'FLUXGATE_ARGUMENT_INVALID The context of a check has the unknown field "ip"; did you mean clientIp? See docs/reference/errors.md.',
    ])
    expect(gate.warnings.counts).toEqual({ FLUXGATE_ARGUMENT_INVALID: 2 })
    await gate.check({ clientIp: '192.0.2.1', path: '/' }, {} as CheckOptions)
    expect(logged()).toHaveLength(1)
  })

  it('of the options of a check or refund are one warning that names the option', async () => {
    const { gate, logged } = await open({ rules: setOf('api') })
    const context = { clientIp: '192.0.2.1', path: '/' }
    await gate.check(context, { ruleSet: 'web' } as CheckOptions)
    await gate.check(context, { permits: 1, peek: true })
    for (let i = 0; i < 2; i++) await gate.refund(context, { permit: 3 } as CheckOptions)
    expect(logged()).toEqual([
      expect.stringContaining('The options of a check have the unknown field "ruleSet"; did you mean ruleSetId?'),
      expect.stringContaining('The options of a check have the unknown field "permit"; did you mean permits?'),
    ])
    expect(gate.warnings.counts).toEqual({ FLUXGATE_ARGUMENT_INVALID: 3 })
  })

  it('of a refund without a rule set are a warning', async () => {
    const { gate, logged } = await open({ rules: setOf('api') })
    await gate.refund({ clientIp: '192.0.2.1', path: '/' }, { ruleSetId: 'apis' })
    expect(logged()).toEqual([expect.stringContaining('FLUXGATE_RULE_SET_UNKNOWN Rule set "apis" does not exist')])
  })

  it('of wait are an error', async () => {
    const limiter = createLimiter({ capacity: 1, window: '1s' })
    await expect(limiter.wait('a', { timeout: 5 } as WaitOptions)).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
      message: 'options.timeout: unknown field "timeout"; did you mean maxWaitMs?',
    })
    expect((await limiter.wait('a', { permits: 1, maxWaitMs: 5 })).allowed).toBe(true)
  })
})

describe('options of an inline rule beside a gate', () => {
  it('are an error that names the conflict', async () => {
    const gate = await createFluxGate({
      rules: { id: 'api', rules: [{ id: 'all', bands: [{ capacity: 1, window: '1m' }] }] },
    })
    onTestFinished(() => gate.close())
    expect(() => rateLimit({ gate, capacity: 1, window: '1m' } as never)).toThrow(
      `Options of rateLimit: 2 errors
  capacity: must not be combined with gate, which has its own rules and store
  window: must not be combined with gate, which has its own rules and store`,
    )
  })

  it('name onRejected if handler is the function of express-rate-limit', () => {
    const handler = () => {}
    expect(() => rateLimit({ handler, capacity: 1, window: '1m' } as never)).toThrow(
      /handler: must be a gate created by createFluxGate, or another Handler; received .*\. Use onRejected to send rejections/,
    )
  })
})

describe('overrides of a rule that ignores them', () => {
  it('are an error', async () => {
    const { gate } = await open({ rules: [setOf('api'), setOf('open', { overrides: true })] })
    await expect(gate.overrides?.put('api', 'r', { key: '192.0.2.1', action: 'ALLOW' })).rejects.toMatchObject({
      code: 'FLUXGATE_ARGUMENT_INVALID',
      message: 'Rule "r" of rule set "api" ignores overrides. Set overrides: true in the rule first.',
    })
    expect(await gate.overrides?.put('open', 'r', { key: '192.0.2.1', action: 'ALLOW' })).toEqual({ created: true })
  })
})

describe('requests without a client address', () => {
  const limit = { capacity: 5, window: '1m' } as const

  it('are one warning in fetch', async () => {
    const logger = newLogger()
    const limited = fetchLimit({ ...limit, logger })
    for (let i = 0; i < 2; i++) await limited(new Request('http://localhost/'))
    expect(logger.warn.mock.calls).toEqual([
      [
        'Requests have no client address, so clients without a key share one limit. Pass { remoteAddress } with the request, or set remoteAddress. See docs/reference/errors.md.',
        { code: 'FLUXGATE_IDENTITY_UNCONFIGURED' },
      ],
    ])
  })

  it('are no warning with an address, or if no rule counts by address', async () => {
    const logger = newLogger()
    await fetchLimit({ ...limit, logger })(new Request('http://localhost/'), { remoteAddress: '192.0.2.1' })
    await fetchLimit({ ...limit, logger, limitScope: 'GLOBAL' })(new Request('http://localhost/'))
    await fetchLimit({ ...limit, logger, key: () => 'ann' })(new Request('http://localhost/'))
    expect(logger.warn).not.toHaveBeenCalled()
  })

  it('are one warning in Hono', async () => {
    const { Hono } = await import('hono')
    const logger = newLogger()
    const app = new Hono()
    app.use(honoLimit({ ...limit, logger }))
    app.get('/', (c) => c.text('ok'))
    for (let i = 0; i < 2; i++) await app.request('/')
    expect(logger.warn.mock.calls).toEqual([
      [expect.stringContaining('Set remoteAddress, for example'), { code: 'FLUXGATE_IDENTITY_UNCONFIGURED' }],
    ])
  })
})
