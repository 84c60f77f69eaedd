import { expect, it, onTestFinished } from 'vitest'
import type { JointCheck, JointDecision } from '../core/decision/joint/joint-check.js'
import type { RuleSetInput } from '../rules/schema/input.js'
import { manualClock } from '../testing/manual-clock.js'
import { openGate } from './create-flux-gate.js'
import type { FluxGateOptions } from './options.js'

const rules: RuleSetInput = {
  id: 'api',
  rules: [
    {
      id: 'tenants',
      when: { 'attributes.kind': 'tenant' },
      limitScope: 'CUSTOM',
      keyField: 'attributes.name',
      algorithm: 'FIXED_WINDOW',
      bands: [{ label: 'minute', capacity: 5, window: '1m' }],
    },
    {
      id: 'routes',
      when: { 'attributes.kind': 'route' },
      limitScope: 'CUSTOM',
      keyField: 'attributes.name',
      algorithm: 'FIXED_WINDOW',
      bands: [{ label: 'minute', capacity: 2, window: '1m' }],
    },
    {
      id: 'tokens',
      when: { 'attributes.kind': 'tokens' },
      limitScope: 'CUSTOM',
      keyField: 'attributes.name',
      bands: [{ label: 'minute', capacity: 3, window: '1m' }],
    },
    {
      id: 'strict',
      when: { 'attributes.kind': 'strict' },
      limitScope: 'USER_ID',
      onMissingKey: 'DENY',
      bands: [{ capacity: 1, window: '1m' }],
    },
    {
      id: 'quiet',
      when: { 'attributes.kind': 'quiet' },
      limitScope: 'GLOBAL',
      mode: 'SHADOW',
      bands: [{ label: 'minute', capacity: 1, window: '1m' }],
    },
  ],
}

async function gateWith(options: Partial<FluxGateOptions> = {}, hooks: Parameters<typeof openGate>[1] = {}) {
  const clock = manualClock(1_800_000_000_000)
  const gate = await openGate({ rules: rules, clock, ...options }, hooks)
  onTestFinished(() => gate.close())
  return { gate, clock }
}

const check = (kind: string, name: string, more: Partial<JointCheck> = {}): JointCheck => ({
  context: { attributes: { kind, name } },
  ...more,
})

const summary = ({ decision, parts }: JointDecision) => [
  decision.allowed,
  ...parts.map(({ allowed, band }) => `${allowed ? 'ok' : 'over'} ${band?.remaining ?? '-'}`),
]

it('charges all checks, or none if one of them is rejected', async () => {
  const { gate } = await gateWith()
  const both = [check('tenant', 'a'), check('route', 'x')]
  expect(summary(await gate.decideTogether(both))).toEqual([true, 'ok 4', 'ok 1'])
  expect(summary(await gate.decideTogether(both))).toEqual([true, 'ok 3', 'ok 0'])
  const rejected = await gate.decideTogether(both)
  expect(summary(rejected)).toEqual([false, 'ok 3', 'over 0'])
  expect(rejected.decision).toMatchObject({ ruleId: 'routes', reason: 'LIMITED', retryAfterMs: 60_000 })
  expect(summary(await gate.decideTogether([check('tenant', 'a')]))).toEqual([true, 'ok 2'])
})

it('returns at once if the buckets are in this process', async () => {
  const { gate } = await gateWith()
  expect(gate.decideTogether([check('tenant', 'a'), check('route', 'x')])).not.toBeInstanceOf(Promise)
})

it('adds the permits of checks of the same bucket', async () => {
  const { gate } = await gateWith()
  const twice = [check('tenant', 'a', { permits: 2 }), check('tenant', 'a')]
  expect(summary(await gate.decideTogether(twice))).toEqual([true, 'ok 2', 'ok 2'])
  expect(summary(await gate.decideTogether(twice))).toEqual([false, 'over 2', 'over 2'])
})

it('charges nothing for 0 permits, and rejects them if one more request would be rejected', async () => {
  const { gate } = await gateWith()
  const free = check('route', 'x', { permits: 0 })
  for (let i = 0; i < 3; i++) expect(summary(await gate.decideTogether([free]))).toEqual([true, 'ok 2'])
  await gate.decideTogether([check('route', 'x', { permits: 2 })])
  const rejected = await gate.decideTogether([free])
  expect(summary(rejected)).toEqual([false, 'over 0'])
  expect(rejected.decision.retryAfterMs).toBe(60_000)
})

it('charges the others only if a check of 0 permits is allowed', async () => {
  const { gate } = await gateWith()
  const mixed = [check('tenant', 'a', { permits: 3 }), check('route', 'x', { permits: 0 })]
  expect(summary(await gate.decideTogether(mixed))).toEqual([true, 'ok 2', 'ok 2'])
  await gate.decideTogether([check('route', 'x', { permits: 2 })])
  expect(summary(await gate.decideTogether(mixed))).toEqual([false, 'over 2', 'over 0'])
  const less = [check('tenant', 'a'), check('route', 'x', { permits: 0 })]
  expect(summary(await gate.decideTogether(less))).toEqual([false, 'ok 2', 'over 0'])
  expect(summary(await gate.decideTogether([check('tenant', 'a', { permits: 2 })]))).toEqual([true, 'ok 0'])
})

it('does not charge rules that another rule of the decision replaces', async () => {
  const replacing: RuleSetInput = {
    ...rules,
    rules: rules.rules.map((rule) => (rule.id === 'routes' ? { ...rule, replaces: ['tenants'] } : rule)),
  }
  const { gate } = await gateWith({ rules: replacing })
  const both = [check('tenant', 'a'), check('route', 'x')]
  expect(summary(await gate.decideTogether(both))).toEqual([true, 'ok -', 'ok 1'])
  expect(summary(await gate.decideTogether([check('tenant', 'a')]))).toEqual([true, 'ok 4'])
})

it('gives permits back for a negative number, if the decision is allowed', async () => {
  const { gate } = await gateWith()
  await gate.decideTogether([check('tenant', 'a', { permits: 5 }), check('route', 'x')])
  const back = check('tenant', 'a', { permits: -2 })
  expect(summary(await gate.decideTogether([back]))).toEqual([true, 'ok 2'])
  expect(summary(await gate.decideTogether([back, check('route', 'x')]))).toEqual([true, 'ok 4', 'ok 0'])
  expect(summary(await gate.decideTogether([back, check('route', 'x')]))).toEqual([false, 'ok 4', 'over 0'])
  expect(summary(await gate.decideTogether([check('tenant', 'a', { permits: -9 })]))).toEqual([true, 'ok 5'])
  expect(summary(await gate.decideTogether([check('tenant', 'new', { permits: -9 })]))).toEqual([true, 'ok 5'])
})

it('allows a check to which no rule applies, unless no check has one and the gate denies these', async () => {
  const { gate } = await gateWith()
  expect(summary(await gate.decideTogether([check('other', 'a'), check('route', 'x')]))).toEqual([true, 'ok -', 'ok 1'])
  expect((await gate.decideTogether([check('other', 'a')])).decision.reason).toBe('NO_RULE')
  const denying = await gateWith({ missingRuleBehavior: 'DENY' })
  expect(summary(await denying.gate.decideTogether([check('other', 'a')]))).toEqual([false, 'over -'])
  expect((await gate.decideTogether([check('route', 'x')], { ruleSetId: 'none' })).decision.reason).toBe('NO_RULE_SET')
})

it('rejects without a charge if an identity is missing', async () => {
  const { gate } = await gateWith()
  const rejected = await gate.decideTogether([check('tenant', 'a'), check('strict', 'a')])
  expect(summary(rejected)).toEqual([false, 'ok -', 'over -'])
  expect(rejected.decision).toMatchObject({ reason: 'MISSING_KEY', ruleId: 'strict' })
  expect(summary(await gate.decideTogether([check('tenant', 'a')]))).toEqual([true, 'ok 4'])
})

it('does not report the bands of shadow rules', async () => {
  const { gate } = await gateWith()
  for (let i = 0; i < 3; i++) expect(summary(await gate.decideTogether([check('quiet', 'a')]))).toEqual([true, 'ok -'])
})

it('replaces the bands with the limit of a check, on the same bucket', async () => {
  const { gate } = await gateWith()
  const limited = check('tenant', 'a', { limit: { capacity: 3, windowMs: 60_000 } })
  expect(summary(await gate.decideTogether([limited]))).toEqual([true, 'ok 2'])
  expect(summary(await gate.decideTogether([check('tenant', 'a', { permits: 2 })]))).toEqual([true, 'ok 2'])
  const rejected = await gate.decideTogether([limited])
  expect(summary(rejected)).toEqual([false, 'over 0'])
  expect(rejected.parts[0]?.band).toMatchObject({ limit: 3, windowMs: 60_000 })
})

it('applies different limits of the same rule in one decision', async () => {
  const { gate } = await gateWith()
  const limit = (capacity: number) => ({ limit: { capacity, windowMs: 60_000 } })
  const checks = [check('tokens', 'a', limit(10)), check('tokens', 'b', limit(4)), check('tokens', 'c')]
  expect(summary(await gate.decideTogether(checks))).toEqual([true, 'ok 9', 'ok 3', 'ok 2'])
  const last = [
    check('tokens', 'a', limit(10)),
    check('tokens', 'b', { ...limit(4), permits: 4 }),
    check('tokens', 'c'),
  ]
  expect(summary(await gate.decideTogether(last))).toEqual([false, 'ok 9', 'over 3', 'ok 2'])
})

it('limits a check without a rule by its own limit, if it has a key', async () => {
  const { gate, clock } = await gateWith()
  const limit = { capacity: 1, windowMs: 1_000, key: 'other=a' }
  const own = [check('other', 'a', { limit })]
  expect(summary(await gate.decideTogether(own))).toEqual([true, 'ok 0'])
  expect(summary(await gate.decideTogether(own))).toEqual([false, 'over 0'])
  expect(summary(await gate.decideTogether([check('other', 'b', { limit: { ...limit, key: 'other=b' } })]))).toEqual([
    true,
    'ok 0',
  ])
  clock.advance(1_000)
  expect(summary(await gate.decideTogether(own))).toEqual([true, 'ok 0'])
  expect(
    summary(await gate.decideTogether([check('other', 'a', { limit: { capacity: 1, windowMs: 1_000 } })])),
  ).toEqual([true, 'ok -'])
})

it('is one decision for observers and listeners, with the context that decides', async () => {
  const seen: unknown[] = []
  const observer = {
    isTiming: false,
    decided: (decision: { allowed: boolean }, context: object) => seen.push([decision.allowed, context]),
    storeFailed() {},
  }
  const { gate } = await gateWith({}, { observer })
  const checks = [check('tenant', 'a'), check('route', 'x', { permits: 2 })]
  await gate.decideTogether(checks)
  await gate.decideTogether(checks)
  await gate.decideTogether([check('route', 'x', { permits: 0 })])
  expect(seen).toEqual([
    [true, checks[0]?.context],
    [false, checks[1]?.context],
  ])
})

it('evaluates a candidate with the same checks', async () => {
  const candidate = {
    ...rules,
    id: 'api.candidate',
    candidateOf: 'api',
    rules: rules.rules.map((rule) =>
      rule.id === 'tenants' ? { ...rule, bands: [{ label: 'minute', capacity: 1, window: '1m' }] } : rule,
    ),
  }
  const { gate } = await gateWith({ rules: [rules, candidate] })
  const options = { ruleSetId: 'api' }
  const both = [check('tenant', 'a'), check('route', 'x')]
  await gate.decideTogether(both, options)
  await gate.decideTogether(both, options)
  await gate.decideTogether([check('tenant', 'a', { permits: 0 })], options)
  expect(gate.candidates.report('api')).toMatchObject({ decisions: 2, rejectedThenOnly: 1, rejectedNowOnly: 0 })
})
