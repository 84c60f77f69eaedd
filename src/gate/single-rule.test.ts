import { describe, expect, it } from 'vitest'
import type { Decision } from '../core/decision.js'
import type { RuleInput } from '../rules/schema/input.js'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGate } from './flux-gate.js'

const start = 1_800_000_000_000

/** A rule that matches no request of these tests. Adding it disables the fast path for single-rule sets. */
const elsewhere: RuleInput = { id: 'elsewhere', path: '/elsewhere', bands: [{ capacity: 1, window: '1m' }] }

const bands = [{ capacity: 3, window: '1m' }]
const rules: Readonly<Record<string, RuleInput>> = {
  'one band': { id: 'only', bands },
  'two bands': { id: 'only', bands: [...bands, { capacity: 4, window: '1h' }] },
  SLIDING_WINDOW_LOG: { id: 'only', algorithm: 'SLIDING_WINDOW_LOG', bands },
  LEAKY_BUCKET: { id: 'only', algorithm: 'LEAKY_BUCKET', bands },
  'SHADOW mode': { id: 'only', mode: 'SHADOW', bands },
  WAIT_FOR_REFILL: { id: 'only', onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 30_000, bands },
  'a rule with overrides': { id: 'only', overrides: true, bands },
  'two permits per request': { id: 'only', permits: 2, bands },
  'requests without identity': { id: 'only', limitScope: 'USER_ID', onMissingKey: 'DENY', bands },
}

describe('a single-rule set decides like the same rule next to another one', () => {
  it.each(Object.entries(rules))('%s', async (_, rule) => {
    const alone = await decisions([rule])
    expect(alone).toEqual(await decisions([rule, elsewhere]))
    expect(new Set(alone.map(({ allowed }) => allowed)).size + Number(rule.mode === 'SHADOW')).toBe(2)
  })

  it('resolves the key once per request', async () => {
    let calls = 0
    const gate = await createFluxGate({
      rules: { id: 'api', rules: [{ id: 'only', limitScope: 'CUSTOM', keyResolver: 'count', bands }] },
      keyResolvers: { count: () => `${++calls}` },
    })
    expect((await gate.check({})).key).toBe('1')
    expect((await gate.check({}, { peek: true })).key).toBe('2')
    expect((await gate.check({})).key).toBe('3')
    await gate.close()
  })

  it('charges nothing for an aborted request', async () => {
    const gate = await createFluxGate({ rules: { id: 'api', rules: [{ id: 'only', bands }] } })
    await expect(gate.check({}, { signal: AbortSignal.abort(new Error('left')) })).rejects.toThrow('left')
    expect((await gate.check({})).remaining).toBe(2)
    await gate.close()
  })
})

async function decisions(rules: readonly RuleInput[]): Promise<Decision[]> {
  const clock = manualClock(start)
  const gate = await createFluxGate({ rules: { id: 'api', rules }, clock })
  const answers: Decision[] = []
  for (const step of steps) {
    answers.push(await step(gate))
    clock.advance(1_000)
  }
  await gate.close()
  return answers
}

const caller = { clientIp: '203.0.113.7', userId: 'ann' }
const steps: readonly ((gate: FluxGate) => Promise<Decision>)[] = [
  (gate) => gate.check(caller),
  (gate) => gate.check(caller, { peek: true }),
  (gate) => gate.check({ clientIp: '2001:db8::1' }),
  (gate) => gate.check(caller, { permits: 2 }),
  (gate) => gate.check(caller),
  (gate) => gate.check(caller, { permits: 4 }),
  (gate) => gate.check(caller),
]
