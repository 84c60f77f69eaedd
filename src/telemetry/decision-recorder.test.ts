import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { BandDecision, Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import { seededRandom } from '../core/seeded-random.js'
import { manualClock } from '../testing/manual-clock.js'
import { DecisionRecorder } from './decision-recorder.js'
import { RuleCounters } from './rule-counters.js'
import type { DecisionSample } from './statistics/statistics.js'

const decision = (changes: Partial<Decision> = {}): Decision => ({
  ...unmeteredDecision(true, 'ALLOWED', 0, { ruleSetId: 'api', ruleId: 'per-ip' }),
  key: '10.0.0.1',
  ...changes,
})

const band = (changes: Partial<BandDecision>): BandDecision => ({
  ruleId: 'per-ip',
  label: '10-per-1s',
  key: '10.0.0.1',
  limit: 10,
  remaining: 0,
  resetAt: 0,
  retryAfterMs: 0,
  allowed: true,
  shadow: false,
  windowMs: 1_000,
  ...changes,
})

describe('DecisionRecorder', () => {
  it('counts each decision once under the deciding rule, and shadow rejections under their own rules', () => {
    const recorder = new DecisionRecorder(manualClock(0))
    recorder.decided(decision(), {}, -1)
    recorder.decided(decision({ delayMs: 5 }), {}, -1)
    recorder.decided(decision({ allowed: false, degraded: true }), {}, -1)
    const shadows = [band({}), ...[1, 2].map(() => band({ ruleId: 'trial', shadow: true, allowed: false }))]
    recorder.decided(decision({ bands: shadows }), {}, -1)
    expect(recorder.summary().rules).toEqual([
      { ruleSetId: 'api', ruleId: 'per-ip', allowed: 2, delayed: 1, denied: 1, shadowDenied: 0 },
      { ruleSetId: 'api', ruleId: 'trial', allowed: 0, delayed: 0, denied: 0, shadowDenied: 1 },
    ])
    expect(recorder.summary().totals).toEqual({ allowed: 2, delayed: 1, denied: 1, shadowDenied: 1, degraded: 1 })
  })

  it('counts rules with the same id in two rule sets separately', () => {
    const recorder = new DecisionRecorder(manualClock(0))
    for (const ruleSetId of ['api', 'web', 'api']) recorder.decided(decision({ ruleSetId }), {}, -1)
    expect(recorder.summary().rules.map(({ ruleSetId, allowed }) => [ruleSetId, allowed])).toEqual([
      ['api', 2],
      ['web', 1],
    ])
  })

  it('does not keep the names of unknown rule sets, because clients choose them', () => {
    const recorder = new DecisionRecorder(manualClock(0))
    for (let i = 0; i < 100; i++)
      recorder.decided(decision({ reason: 'NO_RULE_SET', ruleSetId: `guess-${i}`, ruleId: null }), {}, -1)
    expect(recorder.summary().rules).toEqual([
      { ruleSetId: null, ruleId: null, allowed: 100, delayed: 0, denied: 0, shadowDenied: 0 },
    ])
  })

  it('counts rules beyond the limit together as "other"', () => {
    const counters = new RuleCounters(2)
    for (const ruleId of ['a', 'b', 'c', 'd', 'a']) counters.add(decision({ ruleId }))
    expect(counters.rows().map(({ ruleSetId, ruleId, allowed }) => [ruleSetId, ruleId, allowed])).toEqual([
      ['api', 'a', 2],
      ['api', 'b', 1],
      ['other', 'other', 2],
    ])
  })

  it('samples every decision up to 1000 per second; above, the weights of the samples add up to all decisions', () => {
    const recorder = new DecisionRecorder(manualClock(0), seededRandom(7))
    const samples: DecisionSample[] = []
    recorder.onSample((sample) => samples.push(sample))
    for (let i = 0; i < 999; i++) recorder.decided(decision(), {}, -1)
    expect(samples).toHaveLength(999)
    for (let i = 0; i < 999_001; i++) recorder.decided(decision(), {}, -1)
    const total = samples.reduce((sum, { weight }) => sum + weight, 0)
    expect(samples.length).toBeLessThan(12_000)
    expect(total).toBeLessThanOrEqual(1_000_000)
    expect(total).toBeGreaterThan(995_000)
    expect(recorder.summary().totals.allowed).toBe(1_000_000)
  })

  it('samples every decision again a second after it was busy', () => {
    const recorder = new DecisionRecorder(manualClock(0), seededRandom(7))
    for (let i = 0; i < 100_000; i++) recorder.decided(decision(), {}, -1)
    recorder.secondPassed()
    recorder.secondPassed()
    let sampled = 0
    recorder.onSample(() => sampled++)
    for (let i = 0; i < 10; i++) recorder.decided(decision(), {}, -1)
    expect(sampled).toBe(10)
  })

  it('gives two alternating clients the same weight', () => {
    // The clock does not advance and the seed is fixed, so the sample is deterministic.
    const recorder = new DecisionRecorder(manualClock(0), seededRandom(7))
    const weights: Record<string, number> = { a: 0, b: 0 }
    recorder.onSample(({ decision, weight }) => {
      weights[decision.key as string] = (weights[decision.key as string] as number) + weight
    })
    for (let i = 0; i < 1_000_000; i++) recorder.decided(decision({ key: i % 2 === 0 ? 'a' : 'b' }), {}, -1)
    expect((weights.a as number) / (weights.b as number)).toBeGreaterThan(0.9)
    expect((weights.a as number) / (weights.b as number)).toBeLessThan(1.1)
  })

  it('counts every decision in the histogram, timed or not', () => {
    const recorder = new DecisionRecorder(manualClock(0), seededRandom(7))
    for (let i = 0; i < 50_000; i++) recorder.decided(decision(), {}, recorder.isTiming ? 0.002 : -1)
    const { count, cumulative, sumSeconds } = recorder.durations.read()
    expect(count).toBeGreaterThan(49_000)
    expect(count).toBeLessThanOrEqual(50_000)
    expect(sumSeconds).toBeCloseTo((count * 0.002) / 1_000, 9)
    expect(cumulative.slice(0, 3)).toEqual([0, count, count])
    recorder.decided(decision(), {}, 1.5)
    expect(recorder.durations.read().count).toBe(50_001)
  })

  it('keeps the counts of each second for five minutes', () => {
    const clock = manualClock(0)
    const recorder = new DecisionRecorder(clock)
    for (let second = 1; second <= 302; second++) {
      recorder.decided(decision({ allowed: second % 2 === 0 }), {}, -1)
      clock.advance(1_000)
      recorder.secondPassed()
    }
    const { seconds } = recorder.summary()
    expect(seconds).toHaveLength(300)
    expect(seconds[0]).toEqual({ at: 3_000, allowed: 0, delayed: 0, denied: 1, shadowDenied: 0 })
    expect(seconds[299]).toEqual({ at: 302_000, allowed: 1, delayed: 0, denied: 0, shadowDenied: 0 })
  })

  it('counts store failures by kind', () => {
    const recorder = new DecisionRecorder(manualClock(0))
    recorder.storeFailed(new FluxGateError('FLUXGATE_STORE_TIMEOUT', 'late'))
    recorder.storeFailed(new FluxGateError('FLUXGATE_STORE_OPEN', 'circuit breaker open'))
    recorder.storeFailed(new FluxGateError('FLUXGATE_STORE_UNREACHABLE', 'no connection'))
    recorder.storeFailed(new FluxGateError('FLUXGATE_STORE_MISCONFIGURED', 'NOAUTH'))
    recorder.storeFailed(new Error('anything'))
    expect(recorder.storeErrors).toEqual({ timeout: 1, error: 1, open: 1, unreachable: 1, misconfigured: 1 })
  })
})
