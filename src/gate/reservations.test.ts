import { describe, expect, it, onTestFinished } from 'vitest'
import type { RuleSetInput } from '../rules/schema/input.js'
import { type ManualClock, manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGate } from './flux-gate.js'
import type { FluxGateOptions } from './options.js'

const limit = (id: string, capacity: number, fields: object = {}) => ({
  id,
  limitScope: 'API_KEY' as const,
  bands: [{ capacity, window: '1m' }],
  ...fields,
})
const context = { apiKey: 'k' }
const ttlMs = 30_000

async function openGate(
  rules: readonly object[] = [limit('requests', 60), limit('tokens', 1_000, { cost: 'tokens' })],
  options: Pick<FluxGateOptions, 'metrics'> = {},
): Promise<{ gate: FluxGate; clock: ManualClock }> {
  const clock = manualClock(1_800_000_000_000)
  const gate = await createFluxGate({ rules: { id: 'llm', rules } as RuleSetInput, clock, ...options })
  onTestFinished(() => gate.close())
  return { gate, clock }
}

const remaining = async (gate: FluxGate): Promise<Record<string, number>> => {
  const { bands } = await gate.check(context, { permits: 0, costs: { tokens: 0 } })
  return Object.fromEntries(bands.map((band) => [band.ruleId, band.remaining]))
}

describe('settle', () => {
  it('refunds the excess', async () => {
    const { gate } = await openGate()
    const { decision, id } = await gate.reserve(context, { costs: { tokens: 800 }, ttlMs })
    expect(decision).toMatchObject({ allowed: true, ruleId: 'requests', remaining: 59 })
    expect(await remaining(gate)).toEqual({ requests: 59, tokens: 200 })
    const settled = await gate.settle(id, { costs: { tokens: 300 } })
    expect(settled).toMatchObject({ id, status: 'SETTLED', decision: { allowed: true, remaining: 59 } })
    expect(await remaining(gate)).toEqual({ requests: 59, tokens: 700 })
  })

  it('charges the shortfall, into debt of at most one capacity', async () => {
    const { gate, clock } = await openGate()
    const { id } = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs })
    const { decision } = await gate.settle(id, { costs: { tokens: 1_600 } })
    expect(decision.bands).toMatchObject([
      { ruleId: 'requests', remaining: 59 },
      { ruleId: 'tokens', remaining: 0 },
    ])
    // 600 tokens of debt, and 1 more, at 1000 per minute.
    expect(await gate.check(context, { costs: { tokens: 1 } })).toMatchObject({
      ruleId: 'tokens',
      retryAfterMs: 36_060,
    })
    clock.advance(36_059)
    expect(await gate.check(context, { costs: { tokens: 1 } })).toMatchObject({ allowed: false, retryAfterMs: 1 })
    clock.advance(1)
    expect(await gate.check(context, { costs: { tokens: 1 } })).toMatchObject({ allowed: true })

    const second = await gate.reserve(context, { costs: { tokens: 0 }, ttlMs })
    await gate.settle(second.id, { costs: { tokens: 1_000_000_000 } })
    expect(await gate.check(context, { costs: { tokens: 1 } })).toMatchObject({ retryAfterMs: 60_060 })
  })

  it('refunds as of the time at which the permits were taken', async () => {
    const { gate, clock } = await openGate([limit('tokens', 1_000, { cost: 'tokens' })])
    const { id } = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs: 60_000 })
    // Without the reservation, the bucket would have been full all the time.
    clock.advance(30_000)
    await gate.check(context, { costs: { tokens: 800 } })
    expect(await remaining(gate)).toEqual({ tokens: 200 })
    await gate.settle(id, { costs: { tokens: 0 } })
    expect(await remaining(gate)).toEqual({ tokens: 200 })
  })

  it('refunds all of it while the bucket has not been full since', async () => {
    const { gate, clock } = await openGate([limit('tokens', 1_000, { cost: 'tokens' })])
    await gate.check(context, { costs: { tokens: 500 } })
    const { id } = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs: 60_000 })
    clock.advance(24_000)
    await gate.check(context, { costs: { tokens: 400 } })
    expect(await remaining(gate)).toEqual({ tokens: 0 })
    await gate.settle(id, { costs: { tokens: 100 } })
    expect(await remaining(gate)).toEqual({ tokens: 400 })
  })

  it('refunds to the window that was charged, and not to the next one', async () => {
    const { gate, clock } = await openGate([limit('tokens', 1_000, { cost: 'tokens', algorithm: 'FIXED_WINDOW' })])
    clock.advance(59_999)
    const early = await gate.reserve(context, { costs: { tokens: 600 }, ttlMs })
    await gate.settle(early.id, { costs: { tokens: 100 } })
    expect(await remaining(gate)).toEqual({ tokens: 900 })
    const late = await gate.reserve(context, { costs: { tokens: 600 }, ttlMs })
    clock.advance(1)
    await gate.check(context, { costs: { tokens: 50 } })
    await gate.settle(late.id, { costs: { tokens: 100 } })
    expect(await remaining(gate)).toEqual({ tokens: 950 })
  })

  it('returns the first result when it is repeated, whatever the amounts', async () => {
    const { gate } = await openGate()
    const { id } = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs })
    const first = await gate.settle(id, { costs: { tokens: 100 } })
    expect(await gate.settle(id, { costs: { tokens: 900 } })).toEqual(first)
    expect(await gate.cancel(id)).toEqual(first)
    expect(await remaining(gate)).toEqual({ requests: 59, tokens: 900 })
  })

  it('keeps the estimate of costs that are left out', async () => {
    const { gate } = await openGate()
    const { id } = await gate.reserve(context, { permits: 5, costs: { tokens: 500 }, ttlMs })
    await gate.settle(id, { permits: 2 })
    expect(await remaining(gate)).toEqual({ requests: 58, tokens: 500 })
  })

  it('multiplies the actual cost by the permits of the rule', async () => {
    const { gate } = await openGate([limit('tokens', 1_000, { cost: 'tokens', permits: 10 })])
    const { id } = await gate.reserve(context, { costs: { tokens: 50 }, ttlMs })
    await gate.settle(id, { costs: { tokens: 70 } })
    expect(await remaining(gate)).toEqual({ tokens: 300 })
  })
})

describe('cancel', () => {
  it('refunds everything, once', async () => {
    const { gate } = await openGate()
    const { id } = await gate.reserve(context, { costs: { tokens: 800 }, ttlMs })
    const first = await gate.cancel(id)
    expect(first.status).toBe('CANCELED')
    expect(await remaining(gate)).toEqual({ requests: 60, tokens: 1_000 })
    expect(await gate.settle(id, { costs: { tokens: 800 } })).toEqual(first)
    expect(await remaining(gate)).toEqual({ requests: 60, tokens: 1_000 })
  })
})

describe('reserve', () => {
  it('charges once for an id that is repeated, and returns the first result', async () => {
    const { gate, clock } = await openGate()
    const options = { costs: { tokens: 300 }, ttlMs, id: 'job-7' }
    const first = await gate.reserve(context, options)
    expect(first.id).toBe('job-7')
    clock.advance(1_000)
    expect(await gate.reserve(context, options)).toEqual(first)
    await gate.settle('job-7')
    expect(await gate.reserve({ apiKey: 'another' }, options)).toEqual(first)
    expect(await gate.check({ apiKey: 'another' }, { permits: 0, costs: { tokens: 0 } })).toMatchObject({
      remaining: 60,
    })
  })

  it('charges nothing if it is rejected, and can be repeated with the same id', async () => {
    const { gate, clock } = await openGate()
    await gate.check(context, { costs: { tokens: 900 } })
    const options = { costs: { tokens: 200 }, ttlMs, id: 'job-7' }
    const { decision } = await gate.reserve(context, options)
    expect(decision).toMatchObject({ allowed: false, ruleId: 'tokens', retryAfterMs: 6_000 })
    await expect(gate.settle('job-7')).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
    await expect(gate.cancel('job-7')).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
    expect(await remaining(gate)).toEqual({ requests: 59, tokens: 100 })
    clock.advance(6_000)
    expect((await gate.reserve(context, options)).decision.allowed).toBe(true)
  })

  it('never waits for a refill', async () => {
    const { gate } = await openGate([limit('requests', 1, { onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 60_000 })])
    await gate.reserve(context, { ttlMs })
    expect((await gate.reserve(context, { ttlMs })).decision).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
  })

  it('can be settled without effect if no rule applies', async () => {
    const { gate } = await openGate()
    const { decision, id } = await gate.reserve({}, { ruleSetId: 'other', ttlMs })
    expect(decision).toMatchObject({ allowed: true, reason: 'NO_RULE_SET' })
    expect(await gate.settle(id, { permits: 3 })).toMatchObject({ status: 'SETTLED', decision: { allowed: true } })
  })

  it('does not charge a shadow rule that denies, even when it is settled', async () => {
    const { gate } = await openGate([limit('requests', 60), limit('shadow', 1, { mode: 'SHADOW' })])
    const { decision, id } = await gate.reserve(context, { permits: 2, ttlMs })
    expect(decision.allowed).toBe(true)
    const settled = await gate.settle(id, { permits: 5 })
    expect(settled.decision.bands).toMatchObject([
      { ruleId: 'requests', remaining: 55 },
      { ruleId: 'shadow', remaining: 1 },
    ])
  })

  it('counts as a decision for listeners and metrics', async () => {
    const { gate } = await openGate(undefined, { metrics: true })
    const seen: unknown[] = []
    gate.on('decision', ({ decision }) => seen.push(decision.reason))
    await gate.reserve(context, { costs: { tokens: 1_000 }, ttlMs })
    await gate.reserve(context, { costs: { tokens: 1_000 }, ttlMs })
    expect(seen).toEqual(['ALLOWED', 'LIMITED'])
    expect(await gate.metrics()).toContain('fluxgate_decisions_total{rule_set="llm",rule="tokens",result="denied"} 1')
  })
})

describe('a reservation that is never settled', () => {
  it('stays charged with KEEP, and cannot be settled any more', async () => {
    const { gate, clock } = await openGate([limit('tokens', 1_000, { cost: 'tokens', algorithm: 'FIXED_WINDOW' })])
    const { id } = await gate.reserve(context, { costs: { tokens: 400 }, ttlMs: 10_000 })
    clock.advance(9_999)
    expect(gate.reservedCount).toBe(1)
    clock.advance(1)
    expect(gate.reservedCount).toBe(0)
    await expect(gate.settle(id, { costs: { tokens: 0 } })).rejects.toMatchObject({
      code: 'FLUXGATE_RESERVATION_EXPIRED',
    })
    expect(await remaining(gate)).toEqual({ tokens: 600 })
    clock.advance(60_000)
    await expect(gate.settle(id)).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
  })

  it('is refunded after ttlMs with REFUND, and not one millisecond earlier', async () => {
    const { gate, clock } = await openGate([limit('tokens', 1_000, { cost: 'tokens', algorithm: 'FIXED_WINDOW' })])
    const { id } = await gate.reserve(context, { costs: { tokens: 400 }, ttlMs: 10_000, onExpire: 'REFUND' })
    clock.advance(9_999)
    expect(await remaining(gate)).toEqual({ tokens: 600 })
    clock.advance(1)
    expect(await remaining(gate)).toEqual({ tokens: 1_000 })
    await expect(gate.cancel(id)).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_EXPIRED' })
    expect(await remaining(gate)).toEqual({ tokens: 1_000 })
  })
})

describe('invalid calls', () => {
  const invalid = { code: 'FLUXGATE_ARGUMENT_INVALID' }

  it.each([
    [{ ttlMs: 0 }, 'ttlMs must be a number of milliseconds from 0.001'],
    [{ ttlMs: -1 }, 'received -1'],
    [{ ttlMs: Number.NaN }, 'received NaN'],
    [{ ttlMs: 2_678_400_001 }, 'to 2678400000'],
    [{ ttlMs: '1000' }, 'received "1000"'],
    [{}, 'received nothing'],
    [{ ttlMs, id: '' }, 'id must be a string of 1 to 256 characters'],
    [{ ttlMs, id: 'x'.repeat(257) }, 'another string of 257 characters'],
    [{ ttlMs, id: 'a\nb' }, 'without control characters'],
    [{ ttlMs, id: 7 }, 'received 7'],
    [{ ttlMs, onExpire: 'DROP' }, 'onExpire must be KEEP or REFUND; received "DROP"'],
    [{ ttlMs, permits: -1 }, 'permits must be an integer from 0'],
    [{ ttlMs, permits: 1e10 }, 'permits must be an integer from 0'],
    [{ ttlMs, costs: { tokens: -5 } }, 'costs.tokens must be an integer from 0'],
    [{ ttlMs, ttl: 5 }, 'reserve has no option "ttl"'],
  ])('are rejected by reserve without a charge: %j', async (options, message) => {
    const { gate } = await openGate()
    await expect(gate.reserve(context, options as never)).rejects.toMatchObject({
      ...invalid,
      message: expect.stringContaining(message),
    })
    expect(await remaining(gate)).toEqual({ requests: 60, tokens: 1_000 })
  })

  it.each([
    [{ permits: -1 }, 'permits must be an integer from 0'],
    [{ permits: 1e10 }, 'permits must be an integer from 0'],
    [{ costs: { tokens: 1.5 } }, 'costs.tokens must be an integer from 0'],
    [{ costs: [] }, 'costs must be an object'],
    [{ permits: 1, costs: { requests: 2 } }, 'costs.requests must equal permits'],
    [{ tokens: 5 }, 'settle has no option "tokens"'],
  ])('are rejected by settle, which can be repeated: %j', async (actual, message) => {
    const { gate } = await openGate()
    const { id } = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs })
    await expect(gate.settle(id, actual as never)).rejects.toMatchObject({
      ...invalid,
      message: expect.stringContaining(message),
    })
    await gate.settle(id, { costs: { tokens: 100 } })
    expect(await remaining(gate)).toEqual({ requests: 59, tokens: 900 })
  })

  it('name a cost that was not reserved, and leave the reservation open', async () => {
    const { gate } = await openGate()
    const { id } = await gate.reserve(context, { costs: { tokens: 500 }, ttlMs })
    await expect(gate.settle(id, { costs: { tokns: 1 } })).rejects.toMatchObject({
      code: 'FLUXGATE_COST_UNKNOWN',
      message:
        'costs.tokns was not reserved. The reservation has requests, tokens; reserve a cost that is not known yet with 0.',
    })
    await gate.cancel(id)
    expect(await remaining(gate)).toEqual({ requests: 60, tokens: 1_000 })
  })

  it.each([
    ['LEAKY_BUCKET', limit('shape', 10, { algorithm: 'LEAKY_BUCKET' })],
    ['CONCURRENCY', { id: 'slots', algorithm: 'CONCURRENCY', bands: [{ capacity: 10 }] }],
    ['LEASED', limit('leased', 10, { consistency: 'LEASED' })],
  ])('are those under rules with %s, which do not support reservations', async (name, rule) => {
    const { gate } = await openGate([rule, limit('requests', 60)])
    await expect(gate.reserve(context, { ttlMs })).rejects.toMatchObject({
      code: 'FLUXGATE_RESERVATION_UNSUPPORTED',
      message: expect.stringContaining(name),
    })
  })

  it('are those with an id of strange characters that is unknown; a known one works', async () => {
    const { gate } = await openGate()
    const id = `%{}:"'\\ ключ 🔑 ${'x'.repeat(200)}`
    await expect(gate.settle(id)).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
    await gate.reserve(context, { ttlMs, id })
    expect(await gate.cancel(id)).toMatchObject({ id, status: 'CANCELED' })
  })
})

it('refunds to the buckets of the reservation after the rules were edited', async () => {
  const { gate, clock } = await openGate([limit('tokens', 1_000, { cost: 'tokens' })])
  const { id } = await gate.reserve(context, { costs: { tokens: 600 }, ttlMs })
  await gate.reset({ ruleSetId: 'llm', ruleId: 'tokens' })
  await gate.check(context, { costs: { tokens: 100 } })
  await gate.settle(id, { costs: { tokens: 0 } })
  expect(await remaining(gate)).toEqual({ tokens: 900 })
  clock.advance(1)
})
