import { expect, it, onTestFinished } from 'vitest'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGate } from './flux-gate.js'

const bands = (capacity: number) => [{ capacity, window: '1m' }]
const rules = {
  id: 'api',
  rules: [
    { id: 'requests', limitScope: 'API_KEY' as const, bands: bands(60) },
    { id: 'tokens', limitScope: 'API_KEY' as const, cost: 'tokens', bands: bands(100_000) },
    { id: 'images', limitScope: 'API_KEY' as const, cost: 'images', permits: 10, bands: bands(100) },
  ],
}
const context = { apiKey: 'k' }

async function openGate(): Promise<FluxGate> {
  const gate = await createFluxGate({ rules, clock: manualClock(1_800_000_000_000) })
  onTestFinished(() => gate.close())
  return gate
}

const remaining = async (gate: FluxGate): Promise<Record<string, number>> => {
  const { bands } = await gate.check(context, { permits: 0, costs: { tokens: 0, images: 0 } })
  return Object.fromEntries(bands.map((band) => [band.ruleId, band.remaining]))
}

it('charges each rule the cost that it names, in one decision', async () => {
  const gate = await openGate()
  const decision = await gate.check(context, { permits: 2, costs: { tokens: 1_200, images: 3 } })
  expect(decision.bands).toMatchObject([
    { ruleId: 'images', remaining: 70 },
    { ruleId: 'requests', remaining: 58 },
    { ruleId: 'tokens', remaining: 98_800 },
  ])
  const rejected = await gate.check(context, { costs: { tokens: 98_801 } })
  expect(rejected).toMatchObject({ allowed: false, ruleId: 'tokens', retryAfterMs: 1 })
  expect(await remaining(gate)).toEqual({ requests: 58, tokens: 98_800, images: 70 })
})

it('does not apply a rule to a request without its cost', async () => {
  const gate = await openGate()
  expect((await gate.check(context)).bands.map(({ ruleId }) => ruleId)).toEqual(['requests'])
  expect((await gate.check(context, { costs: { requests: 5 } })).remaining).toBe(54)
})

it('refunds the costs of a check, and charges nothing for 0', async () => {
  const gate = await openGate()
  await gate.check(context, { costs: { tokens: 500 } })
  await gate.refund(context, { costs: { tokens: 500 } })
  expect(await remaining(gate)).toEqual({ requests: 60, tokens: 100_000, images: 100 })
})

it.each([
  [{ tokens: -1 }, 'FLUXGATE_ARGUMENT_INVALID', 'costs.tokens must be an integer from 0 to 1000000000; received -1.'],
  [{ tokens: 1.5 }, 'FLUXGATE_ARGUMENT_INVALID', 'costs.tokens must be an integer from 0 to 1000000000; received 1.5.'],
  [{ tokens: '9' }, 'FLUXGATE_ARGUMENT_INVALID', 'costs.tokens must be an integer from 0 to 1000000000; received "9".'],
  [[1], 'FLUXGATE_ARGUMENT_INVALID', 'costs must be an object such as { tokens: 1200 }; received a list of 1 item.'],
  [{ requests: 3 }, 'FLUXGATE_ARGUMENT_INVALID', /^costs\.requests must equal permits/],
  [{ tokns: 3 }, 'FLUXGATE_COST_UNKNOWN', /^costs\.tokns is charged by no rule .* requests, tokens, images\.$/],
  [{ constructor: 3 }, 'FLUXGATE_COST_UNKNOWN', /^costs\.constructor is charged by no rule/],
])('rejects the costs %j and charges nothing', async (costs, code, message) => {
  const gate = await openGate()
  const check = gate.check(context, { permits: 1, costs: costs as Record<string, number> })
  await expect(check).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  expect(await remaining(gate)).toEqual({ requests: 60, tokens: 100_000, images: 100 })
})
