import { describe, expect, it } from 'vitest'
import type { Decision } from '../core/decision.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import { manualClock } from '../testing/manual-clock.js'
import { openGate } from './create-flux-gate.js'

const rules = { id: 'api', rules: [{ id: 'one', bands: [{ capacity: 2, window: '1m' }] }] }
const clientIp = '192.0.2.1'

function observer(isTiming = false) {
  const decided: { decision: Decision; durationMs: number }[] = []
  const failures: unknown[] = []
  return {
    isTiming,
    decided: (decision: Decision, _: object, durationMs: number) => decided.push({ decision, durationMs }),
    storeFailed: (error: unknown) => failures.push(error),
    seen: decided,
    failures,
  }
}

describe('observed decisions', () => {
  it('are reported to the observer synchronously, by check and checkNow', async () => {
    const watching = observer()
    const gate = await openGate({ rules, clock: manualClock(0) }, { observer: watching })
    const first = gate.decide({ clientIp }) as Decision
    const second = await gate.check({ clientIp })
    const third = await gate.check({ clientIp })
    expect(watching.seen.map(({ decision }) => decision)).toEqual([first, second, third])
    expect(watching.seen.map(({ durationMs }) => durationMs)).toEqual([-1, -1, -1])
    expect([first.allowed, second.allowed, third.allowed]).toEqual([true, true, false])
    await gate.close()
  })

  it('are timed if the observer requests it; a peek is not reported', async () => {
    const watching = observer(true)
    const gate = await openGate({ rules, clock: manualClock(0) }, { observer: watching })
    gate.decide({ clientIp })
    gate.decide({ clientIp }, { peek: true })
    expect(watching.seen).toHaveLength(1)
    expect(watching.seen[0]?.durationMs).toBeGreaterThanOrEqual(0)
    await gate.close()
  })

  it('are still made synchronously while a listener is registered', async () => {
    const gate = await openGate({ rules, clock: manualClock(0) })
    const heard: Decision[] = []
    const stop = gate.on('decision', ({ decision }) => heard.push(decision))
    const decision = gate.decide({ clientIp }) as Decision
    expect(decision.allowed).toBe(true)
    expect(heard).toEqual([decision])
    stop()
    gate.decide({ clientIp })
    expect(heard).toHaveLength(1)
    await gate.close()
  })

  it('of a failing store are reported with the failure, and always timed', async () => {
    const { chargeSync: _, ...slow } = memoryStore({ clock: manualClock(0) })
    const store = { ...slow, charge: () => Promise.reject(new Error('broken')) }
    const watching = observer()
    const gate = await openGate({ rules, store, clock: manualClock(0) }, { observer: watching })
    expect((await gate.check({ clientIp })).degraded).toBe(true)
    expect(watching.failures).toHaveLength(1)
    expect(watching.seen[0]?.durationMs).toBeGreaterThanOrEqual(0)
    await gate.close()
  })

  it('reject with the same errors as unobserved ones', async () => {
    const gate = await openGate({ rules, clock: manualClock(0) }, { observer: observer() })
    await expect(gate.check({ clientIp }, { permits: -1 })).rejects.toThrow()
    await gate.close()
    await expect(gate.check({ clientIp })).rejects.toMatchObject({ code: 'FLUXGATE_CLOSED' })
    expect(() => gate.decide({ clientIp })).toThrow(expect.objectContaining({ code: 'FLUXGATE_CLOSED' }))
  })
})
