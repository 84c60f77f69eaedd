import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../../core/decision/unmetered-decision.js'
import type { Decision } from '../../core/decision.js'
import { manualClock } from '../../testing/manual-clock.js'
import { DecisionRecorder } from '../decision-recorder.js'
import type { SeriesQuery } from './decision-series.js'
import { mergeOutages, Outages } from './outages.js'
import { quantileMs, seriesReport } from './report.js'

const startMs = 1_700_000_040_000

function recording() {
  const clock = manualClock(startMs)
  const recorder = new DecisionRecorder(clock)
  const decide = (changes: Partial<Decision> = {}, durationMs = -1): void =>
    recorder.decided(
      { ...unmeteredDecision(true, 'ALLOWED', 0, { ruleSetId: 'api', ruleId: 'reads' }), ...changes },
      {},
      durationMs,
    )
  const tick = (): void => {
    clock.advance(1_000)
    recorder.secondPassed()
  }
  const partOf = (query: Partial<SeriesQuery> = {}) => {
    const full = { resolution: '1s', ...query } as const
    return { query: full, ...recorder.series.read(full), outages: [], series: recorder.series.names() }
  }
  return {
    clock,
    recorder,
    decide,
    tick,
    partOf,
    read: (query?: Partial<SeriesQuery>) => seriesReport([partOf(query)]),
  }
}

describe('series of decisions', () => {
  it('has the counts of every second, in total, by rule set and by rule', () => {
    const { decide, tick, read } = recording()
    decide()
    decide({ allowed: false })
    tick()
    decide({ delayMs: 5, ruleId: 'writes' })
    decide({ degraded: true, ruleSetId: 'other' })
    tick()
    const since = startMs
    const { points, series, stepMs } = read({ since })
    expect(stepMs).toBe(1_000)
    expect(points.at).toEqual([startMs + 1_000, startMs + 2_000])
    expect(points).toMatchObject({ allowed: [1, 1], denied: [1, 0], delayed: [0, 1], degraded: [0, 1] })
    expect(read({ since, ruleSetId: 'api' }).points).toMatchObject({
      allowed: [1, 0],
      delayed: [0, 1],
      degraded: [0, 0],
    })
    expect(read({ since, ruleSetId: 'api', ruleId: 'reads' }).points).toMatchObject({ allowed: [1, 0], denied: [1, 0] })
    expect(read({ since, ruleSetId: 'api', ruleId: 'none' }).points.allowed).toEqual([0, 0])
    expect(series).toEqual([
      { ruleSetId: 'api', ruleId: 'reads' },
      { ruleSetId: 'api', ruleId: 'writes' },
      { ruleSetId: 'api', ruleId: null },
      { ruleSetId: 'other', ruleId: 'reads' },
      { ruleSetId: 'other', ruleId: null },
    ])
  })

  it('keeps 15 minutes by second and 24 hours by minute', () => {
    const { decide, tick, read } = recording()
    for (let second = 0; second < 2 * 3_600; second++) {
      decide()
      tick()
    }
    const seconds = read()
    expect(seconds.points.at).toHaveLength(900)
    expect(seconds.points.allowed).toEqual(new Array(900).fill(1))
    const minutes = read({ resolution: '1m', since: startMs })
    expect(minutes.points.at).toHaveLength(120)
    expect(minutes.points.allowed).toEqual(new Array(120).fill(60))
    expect(read({ resolution: '1m' }).points.at).toHaveLength(1_440)
  })

  it('leaves gaps at zero after a stall, and ignores a clock that steps back', () => {
    const { clock, recorder, decide, tick, read } = recording()
    decide()
    tick()
    clock.advance(2_000)
    decide()
    tick()
    expect(read({ since: startMs }).points.allowed).toEqual([1, 0, 0, 1])
    clock.advance(-3_000)
    decide()
    recorder.secondPassed()
    expect(read({ since: startMs }).points.allowed).toEqual([1, 0, 0, 2])
  })

  it('has the latency of each interval and rule', () => {
    const { decide, tick, read } = recording()
    for (let i = 0; i < 100; i++) decide({}, i < 95 ? 0.2 : 40)
    decide({ ruleId: 'writes' }, 2)
    tick()
    const { p50Ms, p99Ms } = read({ since: startMs }).points
    expect(p50Ms[0]).toBeGreaterThan(0.1)
    expect(p50Ms[0]).toBeLessThan(0.25)
    expect(p99Ms[0]).toBeGreaterThan(25)
    const writes = read({ since: startMs, ruleSetId: 'api', ruleId: 'writes' }).points
    expect(writes.p99Ms[0]).toBeCloseTo(2.485, 3)
    tick()
    expect(read({ since: startMs + 1_000 }).points).toMatchObject({ p50Ms: [null], p99Ms: [null] })
  })

  it('keeps at most 64 series, and replaces those that are unused for 15 minutes', () => {
    const { decide, tick, read } = recording()
    for (let i = 0; i < 200; i++) decide({ ruleId: `rule-${i}` })
    tick()
    expect(read().series).toHaveLength(64)
    for (let second = 0; second < 901; second++) tick()
    decide({ ruleId: 'late' })
    tick()
    expect(read().series).toHaveLength(64)
    expect(read().series).toContainEqual({ ruleSetId: 'api', ruleId: 'late' })
  })

  it('adds up the series of several processes', () => {
    const one = recording()
    const other = recording()
    for (const { decide, tick } of [one, other]) {
      decide({}, 1)
      tick()
    }
    other.decide()
    other.tick()
    const since = startMs
    const { points } = seriesReport([one.partOf({ since }), other.partOf({ since })])
    expect(points.allowed).toEqual([2, 1])
    expect(points.p50Ms[0]).toBeCloseTo(0.75, 5)
  })
})

describe('quantileMs', () => {
  it('interpolates within a bucket, and is null without data', () => {
    expect(quantileMs(new Array(19).fill(0), 0.5)).toBeNull()
    expect(quantileMs([0, 0, 10, ...new Array(16).fill(0)], 0.5)).toBe(0.00375)
    expect(quantileMs([...new Array(18).fill(0), 3], 0.99)).toBe(1_000)
  })
})

describe('outages', () => {
  it('records start, end and first error, and merges those of several processes', () => {
    const clock = manualClock(0)
    const outages = new Outages(clock)
    outages.start('STORE', 'no connection')
    clock.advance(10)
    outages.start('STORE', 'later error')
    outages.end('RULES')
    outages.end('STORE')
    outages.start('RULES', 'invalid')
    const [store, rules] = outages.read()
    expect(store).toEqual({ kind: 'STORE', fromAt: 0, toAt: 10, error: 'no connection' })
    expect(rules).toEqual({ kind: 'RULES', fromAt: 10, toAt: null, error: 'invalid' })
    expect(outages.read(10)).toEqual([rules])
    const overlapping = { kind: 'STORE', fromAt: 5, toAt: 20, error: 'x' } as const
    expect(mergeOutages([overlapping, ...outages.read()])).toEqual([{ ...store, toAt: 20 }, rules])
  })

  it('keeps the latest 100', () => {
    const outages = new Outages(manualClock(0))
    for (let i = 0; i < 150; i++) {
      outages.start('STORE', String(i))
      outages.end('STORE')
    }
    expect(outages.read(-1)).toHaveLength(100)
  })
})
