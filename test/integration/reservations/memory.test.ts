import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { BucketStore } from '../../../src/core/bucket-store.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../../src/gate/flux-gate.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { memoryStore } from '../../../src/stores/memory/memory-store.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'

describe('reservations in memory', () => {
  it('take less than 1,000 bytes each under a rule with one band', async () => {
    const clock = manualClock(0)
    const [gate, before] = [await gateWith(memoryStore({ clock }), clock, [perKey]), heapSize()]
    for (let i = 0; i < 20_000; i++) await reserveIn(gate, `job ${i}`, `customer ${i % 100}`)
    expect((heapSize() - before) / 20_000).toBeLessThan(1_000)
    // Used after the measurement, so that nothing is collected before it.
    expect((await reserveIn(gate, 'job 0', 'customer 0')).decision.remaining).toBe(999_997)
  })

  it('return the first result for a repeated call, for every key and band, also after the settlement', async () => {
    const clock = manualClock(0)
    const gate = await gateWith(memoryStore({ clock }), clock)
    const first = await reserveIn(gate, 'a', 'k')
    await reserveIn(gate, 'b', 'k')
    expect(await reserveIn(gate, 'a', 'k')).toEqual(first)
    const settled = await gate.settle('a', { permits: 1 })
    clock.advance(1_000)
    await reserveIn(gate, 'c', 'k')
    expect(await reserveIn(gate, 'a', 'k')).toEqual(first)
    expect(await gate.settle('a', { permits: 2 })).toEqual(settled)
    expect(first.decision.bands.map(({ key, remaining }) => [key, remaining])).toEqual([
      ['k', 999_997],
      ['GET', 499_994],
      ['GET', 1_999_994],
    ])
  })

  it('are bounded by maxReservations', async () => {
    const clock = manualClock(0)
    const gate = await gateWith(memoryStore({ clock, maxReservations: 2 }), clock)
    await reserveIn(gate, 'a', 'k')
    await reserveIn(gate, 'b', 'k')
    await expect(reserveIn(gate, 'c', 'k')).rejects.toThrow(/maxReservations/)
    expect(() => memoryStore({ maxReservations: 0 })).toThrow(
      'maxReservations of memoryStore must be an integer from 1 to 16777216; received 0.',
    )
  })
})

const perKey: RuleInput = { id: 'a', limitScope: 'API_KEY', bands: [{ capacity: 1_000_000, window: '1d' }] }
const perMethod: RuleInput = {
  ...{ id: 'b', limitScope: 'COMPOSITE', compositeKeyFields: ['METHOD'], permits: 2 },
  bands: [
    { capacity: 500_000, window: '1d' },
    { capacity: 2_000_000, window: '1w' },
  ],
}

const gateWith = (store: BucketStore, clock: ManualClock, rules = [perKey, perMethod]) =>
  createFluxGate({ rules: { id: 'llm', rules }, store, clock })

const reserveIn = (gate: FluxGate, id: string, apiKey: string) =>
  gate.reserve({ apiKey, method: 'GET' }, { id, permits: 3, ttlMs: 600_000 })

function heapSize(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}
