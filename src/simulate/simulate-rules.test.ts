import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { BandDecision, Decision } from '../core/decision.js'
import type { Arrival } from './arrival.js'
import { simulateRules } from './simulate-rules.js'
import { virtualClock } from './virtual-clock.js'

const bandOf = (ruleId: string, allowed: boolean, shadow = false): BandDecision => ({
  ruleId,
  label: 'b',
  key: 'k',
  limit: 1,
  remaining: 0,
  resetAt: 0,
  retryAfterMs: 0,
  allowed,
  shadow,
  windowMs: 1_000,
})

const decision = (bands: readonly BandDecision[], delayMs = 0): Decision => {
  const allowed = bands.every((band) => band.allowed || band.shadow)
  return { ...unmeteredDecision(allowed, allowed ? 'ALLOWED' : 'LIMITED', 0, { ruleId: 'a' }), bands, delayMs }
}

/** Rules that decide one arrival after the other as given. */
const decidedAs = (answers: Decision[]) => ({ clock: virtualClock(), decide: () => answers.shift() as Decision })

const at = (...ms: number[]) => ms.map((one) => ({ at: one * 1000 }))

describe('simulateRules', () => {
  it('counts applied, allowed and rejected requests per rule', async () => {
    const answers = [
      decision([bandOf('a', true), bandOf('a', true), bandOf('b', true)]),
      decision([bandOf('a', false), bandOf('b', true)]),
      decision([bandOf('a', false), bandOf('b', false)]),
      decision([bandOf('a', true), bandOf('s', false, true)]),
    ]
    const { rules, total, withoutRule } = await simulateRules(decidedAs(answers), at(0, 1, 2, 3))
    expect(rules).toEqual([
      { ruleId: 'a', applied: 4, allowed: 2, rejected: 2, banned: 0, shadowRejected: 0 },
      { ruleId: 'b', applied: 3, allowed: 1, rejected: 1, banned: 0, shadowRejected: 0 },
      { ruleId: 's', applied: 1, allowed: 1, rejected: 0, banned: 0, shadowRejected: 1 },
    ])
    expect(total).toMatchObject({ offered: 4, allowed: 2, rejected: 2 })
    expect(withoutRule).toBe(0)
  })

  it('counts rejections without a bucket and requests without a rule', async () => {
    const answers = [unmeteredDecision(false, 'MISSING_KEY', 0, { ruleId: 'a' }), unmeteredDecision(true, 'NO_RULE', 0)]
    const { rules, withoutRule } = await simulateRules(decidedAs(answers), at(0, 1))
    expect(rules).toEqual([{ ruleId: 'a', applied: 1, allowed: 0, rejected: 1, banned: 0, shadowRejected: 0 }])
    expect(withoutRule).toBe(1)
  })

  it('counts releases at their time, even if a later request overtakes an earlier one', async () => {
    const answers = [
      decision([bandOf('a', true)], 500),
      decision([bandOf('b', true)], 0),
      decision([bandOf('b', true)], 100),
    ]
    const { total } = await simulateRules(decidedAs(answers), at(0, 10, 20))
    expect(total).toMatchObject({ smallestGapMs: 110, longestGapMs: 380, maxDelayMs: 500, mostInAnyWindow: 3 })
  })

  it('counts rejections during a ban', async () => {
    const banned = { ...decision([bandOf('a', false)]), reason: 'BANNED' as const }
    const { rules } = await simulateRules(decidedAs([decision([bandOf('a', false)]), banned]), at(0, 1))
    expect(rules).toEqual([{ ruleId: 'a', applied: 2, allowed: 0, rejected: 2, banned: 1, shadowRejected: 0 }])
  })

  it('moves the clock to the time of each arrival before it is decided', async () => {
    const clock = virtualClock()
    const seen: unknown[] = []
    const decide = (arrival: Arrival): Decision => {
      seen.push([arrival.context, clock.now()])
      return unmeteredDecision(true, 'NO_RULE', 0)
    }
    await simulateRules({ clock, decide }, [{ at: 5, context: { clientIp: '10.0.0.1' } }, { at: 9 }])
    expect(seen).toEqual([
      [{ clientIp: '10.0.0.1' }, 0.005],
      [undefined, 0.009],
    ])
  })

  it('counts requests in progress, from their release to their end', async () => {
    const answers = [decision([bandOf('a', true)], 500), decision([bandOf('a', true)]), decision([bandOf('a', true)])]
    const arrivals = [0, 10, 20].map((ms) => ({ at: ms * 1000, duration: 100_000 }))
    expect((await simulateRules(decidedAs(answers), arrivals)).total.mostInProgress).toBe(2)
    const rest = [decision([bandOf('a', true)]), decision([bandOf('a', true)])]
    const { total } = await simulateRules(decidedAs(rest), at(0, 50), { serviceTime: () => 50_000 })
    expect(total.mostInProgress).toBe(1)
    expect((await simulateRules(decidedAs([decision([])]), at(0))).total.mostInProgress).toBeNull()
  })

  it('reports an error of a decision that waits, and a decision that never comes', async () => {
    const clock = virtualClock()
    const failing = { clock, decide: () => Promise.reject(new Error('broken')) }
    await expect(simulateRules(failing, at(0))).rejects.toThrow('broken')
    const endless = { clock, decide: () => new Promise<Decision>(() => {}) }
    await expect(simulateRules(endless, at(0))).rejects.toThrow('waits for a decision forever')
  })
})

describe('virtualClock', () => {
  it('fires timers in order at their time, except for cancelled ones', () => {
    const clock = virtualClock()
    const woken: number[] = []
    const sleep = (ms: number) => clock.schedule?.(ms, () => woken.push(clock.now()))
    sleep(30)
    sleep(10)
    sleep(20)?.()
    clock.moveTo(9_999)
    expect(woken).toEqual([])
    clock.moveTo(40_000)
    expect(woken).toEqual([10, 30])
    clock.moveTo(1)
    expect(clock.now()).toBe(40)
  })
})
