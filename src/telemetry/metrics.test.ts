import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import { manualClock } from '../testing/manual-clock.js'
import { DecisionRecorder } from './decision-recorder.js'
import { renderPrometheus } from './exposition/prometheus-text.js'
import { mergeMetrics } from './merge-metrics.js'
import { collectMetrics, type MetricsSource, metricFamilies } from './metrics.js'

function sourceOf(changes: Partial<MetricsSource> = {}): MetricsSource & { recorder: DecisionRecorder } {
  const recorder = new DecisionRecorder(manualClock(0))
  const { counters, durations, storeErrors } = recorder
  const reloads = { changed: 2, unchanged: 1, failed: 0 }
  const ruleCounts = [{ ruleSetId: 'api', count: 3 }]
  const warnings = { FLUXGATE_RULE_SET_UNKNOWN: 6 }
  const rest = {
    warnings,
    isStoreUp: true,
    breaker: 'OPEN',
    ruleCounts,
    waiting: 4,
    leasePermits: 5,
    holds: 6,
    reservations: 7,
    bans: [{ ruleSetId: 'api', ruleId: 'login', count: 7 }],
  } as const
  return { recorder, counters, durations, storeErrors, reloads, ...rest, ...changes }
}

const rendered = (source: MetricsSource): string => renderPrometheus(collectMetrics(source))

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Parses the Prometheus text format and throws for anything that is not part of it. */
function parse(text: string): { types: Map<string, string>; helps: Map<string, string>; samples: Sample[] } {
  const types = new Map<string, string>()
  const helps = new Map<string, string>()
  const samples: Sample[] = []
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  for (const line of text.slice(0, -1).split('\n')) {
    const [, kind, about = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line) ?? []
    if (kind === 'HELP') helps.set(about, rest)
    else if (kind === 'TYPE') types.set(about, rest)
    else {
      const [, name, , inner = '', number = ''] =
        /^([a-zA-Z_:][\w:]*)(\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$/.exec(line) ?? []
      if (name === undefined) throw new Error(`not a line of the format: ${line}`)
      const pairs = [...inner.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)]
      const labels = Object.fromEntries(
        pairs.map(([, label = '', value = '']) => [
          label,
          value.replaceAll(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char)),
        ]),
      )
      const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number)
      if (Number.isNaN(value)) throw new Error(`not a number: ${line}`)
      samples.push({ name, labels, value })
    }
  }
  return { types, helps, samples }
}

const decision = (ruleId: string, allowed = true) =>
  unmeteredDecision(allowed, allowed ? 'ALLOWED' : 'LIMITED', 0, { ruleSetId: 'api', ruleId })

describe('the metrics', () => {
  it('have TYPE and HELP for each of the fourteen families, and no samples of other families', () => {
    const { types, helps, samples } = parse(rendered(sourceOf()))
    expect(Object.fromEntries(types)).toEqual(
      Object.fromEntries(Object.entries(metricFamilies).map(([name, { type }]) => [name, type])),
    )
    expect([...helps.keys()]).toEqual([...types.keys()])
    expect(types.size).toBe(14)
    const families = new Set(samples.map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')))
    for (const name of families) expect(types.has(name), name).toBe(true)
  })

  it('count decisions by rule and result', () => {
    const source = sourceOf()
    source.recorder.decided(decision('login'), {}, 0.004)
    source.recorder.decided(decision('login', false), {}, 20)
    const { samples } = parse(rendered(source))
    const valuesOf = (name: string, labels: Record<string, string> = {}) =>
      samples
        .filter((one) => one.name === name && JSON.stringify(one.labels) === JSON.stringify(labels))
        .map(({ value }) => value)
    const of = (result: string) => ({ rule_set: 'api', rule: 'login', result })
    expect(valuesOf('fluxgate_decisions_total', of('allowed'))).toEqual([1])
    expect(valuesOf('fluxgate_decisions_total', of('denied'))).toEqual([1])
    expect(valuesOf('fluxgate_decisions_total', of('delayed'))).toEqual([0])
    expect(valuesOf('fluxgate_decisions_total', of('shadow_denied'))).toEqual([0])
    expect(valuesOf('fluxgate_decision_duration_seconds_count')).toEqual([2])
    expect(valuesOf('fluxgate_decision_duration_seconds_sum')).toEqual([0.020_004])
    expect(valuesOf('fluxgate_decision_duration_seconds_bucket', { le: '0.000005' })).toEqual([1])
    expect(valuesOf('fluxgate_decision_duration_seconds_bucket', { le: '0.01' })).toEqual([1])
    expect(valuesOf('fluxgate_decision_duration_seconds_bucket', { le: '0.025' })).toEqual([2])
    expect(valuesOf('fluxgate_decision_duration_seconds_bucket', { le: '+Inf' })).toEqual([2])
    expect(valuesOf('fluxgate_breaker_state')).toEqual([2])
    expect(valuesOf('fluxgate_store_up')).toEqual([1])
    expect(valuesOf('fluxgate_rules', { rule_set: 'api' })).toEqual([3])
    expect(valuesOf('fluxgate_rule_reloads_total', { result: 'changed' })).toEqual([2])
    expect(valuesOf('fluxgate_waiting_requests')).toEqual([4])
    expect(valuesOf('fluxgate_lease_permits')).toEqual([5])
    expect(valuesOf('fluxgate_bans_total', { rule_set: 'api', rule: 'login' })).toEqual([7])
  })

  it('have cumulative histogram buckets', () => {
    const source = sourceOf()
    for (let i = 0; i < 100; i++) source.recorder.decided(decision('a'), {}, i / 10)
    const buckets = parse(rendered(source)).samples.filter(({ name }) => name.endsWith('_bucket'))
    const bounds = buckets.map(({ labels }) => Number((labels.le as string).replace('+Inf', 'Infinity')))
    expect(bounds).toEqual([...bounds].sort((a, b) => a - b))
    expect(buckets.map(({ value }) => value)).toEqual(buckets.map(({ value }) => value).sort((a, b) => a - b))
    expect(buckets.at(-1)?.value).toBe(100)
  })

  it('contain each series once for any number of rules and rule sets', () => {
    const ruleCounts = Array.from({ length: 3_000 }, (_, i) => ({
      ruleSetId: i === 0 ? 'other' : `set-${i}`,
      count: 1,
    }))
    const source = sourceOf({ ruleCounts })
    for (let i = 0; i < 6_000; i++) source.recorder.decided(decision(`rule-${i}`), {}, -1)
    const { samples } = parse(rendered(source))
    const series = samples.map(({ name, labels }) => JSON.stringify([name, labels]))
    expect(new Set(series).size).toBe(series.length)
    expect(samples.filter(({ name }) => name === 'fluxgate_rules')).toHaveLength(1_000)
    expect(samples.filter(({ name }) => name === 'fluxgate_decisions_total')).toHaveLength(4 * 5_001)
  })

  it('escape label values', () => {
    const ruleCounts = [{ ruleSetId: 'a"b\\c\nd', count: 1 }]
    const { samples } = parse(rendered(sourceOf({ ruleCounts })))
    expect(samples.find(({ name }) => name === 'fluxgate_rules')?.labels).toEqual({ rule_set: 'a"b\\c\nd' })
  })
})

it('sums the metrics of several processes, and reports the worst circuit breaker and store state', () => {
  const one = sourceOf({ breaker: 'OPEN', isStoreUp: false, waiting: 1 })
  const two = sourceOf({ breaker: 'CLOSED', waiting: 2 })
  one.recorder.decided(decision('a'), {}, 0.004)
  two.recorder.decided(decision('a'), {}, 20)
  two.recorder.decided(decision('b', false), {}, 20)
  const { samples, types } = parse(renderPrometheus(mergeMetrics([collectMetrics(one), collectMetrics(two)])))
  const sumOf = (text: string) =>
    samples.find(({ name, labels }) => `${name}${JSON.stringify(Object.values(labels))}` === text)?.value
  expect(types.size).toBe(14)
  expect(sumOf('fluxgate_decisions_total["api","a","allowed"]')).toBe(2)
  expect(sumOf('fluxgate_decisions_total["api","b","denied"]')).toBe(1)
  expect(sumOf('fluxgate_decision_duration_seconds_bucket["0.000005"]')).toBe(1)
  expect(sumOf('fluxgate_decision_duration_seconds_count[]')).toBe(3)
  expect(sumOf('fluxgate_breaker_state[]')).toBe(2)
  expect(sumOf('fluxgate_store_up[]')).toBe(0)
  expect(sumOf('fluxgate_rules["api"]')).toBe(3)
  expect(sumOf('fluxgate_waiting_requests[]')).toBe(3)
  expect(mergeMetrics([collectMetrics(one)])).toEqual(collectMetrics(one))
})

it('docs/reference/metrics.md lists exactly the metrics, with type, labels and meaning', () => {
  const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  const documented = rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  const known = Object.entries(metricFamilies).map(([name, { type, labels, help }]) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ])
  expect(documented).toEqual(known)
})
