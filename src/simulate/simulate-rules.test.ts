import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { BandDecision, Decision } from '../core/decision.js'
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

const at = (...ms: number[]) => ms.map((one) => ({ at: one * 1000 }))

describe('simulateRules', () => {
  it('counts applied, allowed and rejected requests per rule', async () => {
    const answers = [
      decision([bandOf('a', true), bandOf('a', true), bandOf('b', true)]),
      decision([bandOf('a', false), bandOf('b', true)]),
      decision([bandOf('a', false), bandOf('b', false)]),
      decision([bandOf('a', true), bandOf('s', false, true)]),
    ]
    const { rules, total, withoutRule } = await simulateRules(() => answers.shift() as Decision, at(0, 1, 2, 3))
    expect(rules).toEqual([
      { ruleId: 'a', applied: 4, allowed: 2, rejected: 2, shadowRejected: 0 },
      { ruleId: 'b', applied: 3, allowed: 1, rejected: 1, shadowRejected: 0 },
      { ruleId: 's', applied: 1, allowed: 1, rejected: 0, shadowRejected: 1 },
    ])
    expect(total).toMatchObject({ offered: 4, allowed: 2, rejected: 2 })
    expect(withoutRule).toBe(0)
  })

  it('counts rejections without a bucket and requests without a rule', async () => {
    const answers = [unmeteredDecision(false, 'MISSING_KEY', 0, { ruleId: 'a' }), unmeteredDecision(true, 'NO_RULE', 0)]
    const { rules, withoutRule } = await simulateRules(() => answers.shift() as Decision, at(0, 1))
    expect(rules).toEqual([{ ruleId: 'a', applied: 1, allowed: 0, rejected: 1, shadowRejected: 0 }])
    expect(withoutRule).toBe(1)
  })

  it('counts releases at their time, even if a later request overtakes an earlier one', async () => {
    const answers = [
      decision([bandOf('a', true)], 500),
      decision([bandOf('b', true)], 0),
      decision([bandOf('b', true)], 100),
    ]
    const { total } = await simulateRules(() => answers.shift() as Decision, at(0, 10, 20))
    expect(total).toMatchObject({ smallestGapMs: 110, longestGapMs: 380, maxDelayMs: 500, mostInAnyWindow: 3 })
  })

  it('passes the time of each request to the decision', async () => {
    const seen: unknown[] = []
    const decide = (context: object, tick: number): Decision => {
      seen.push([context, tick])
      return unmeteredDecision(true, 'NO_RULE', 0)
    }
    await simulateRules(decide, [{ at: 5, context: { clientIp: '10.0.0.1' } }, { at: 9 }])
    expect(seen).toEqual([
      [{ clientIp: '10.0.0.1' }, 5],
      [{}, 9],
    ])
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
