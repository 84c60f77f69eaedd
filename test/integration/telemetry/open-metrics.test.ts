import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../../../src/core/decision/unmetered-decision.js'
import type { RequestContext } from '../../../src/core/request-context.js'
import { DecisionRecorder } from '../../../src/telemetry/decision-recorder.js'
import { negotiateFormat, renderMetrics } from '../../../src/telemetry/exposition/exposition.js'
import { renderOpenMetrics } from '../../../src/telemetry/exposition/open-metrics.js'
import { renderPrometheus } from '../../../src/telemetry/exposition/prometheus-text.js'
import { mergeMetrics } from '../../../src/telemetry/merge-metrics.js'
import { collectMetrics, metricFamilies } from '../../../src/telemetry/metrics.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { parseOpenMetrics } from '../../fixtures/open-metrics.js'

function processWith(now = 1_800_000_000_123) {
  const recorder = new DecisionRecorder(manualClock(now))
  const decide = (ruleId: string, isAllowed: boolean, durationMs: number, headers?: RequestContext['headers']) => {
    const reason = isAllowed ? 'ALLOWED' : 'LIMITED'
    recorder.decided(
      unmeteredDecision(isAllowed, reason, 0, { ruleSetId: 'api', ruleId }),
      headers ? { headers } : {},
      durationMs,
    )
  }
  const collect = () =>
    collectMetrics({
      counters: recorder.counters,
      durations: recorder.durations,
      storeErrors: recorder.storeErrors,
      reloads: { changed: 1, unchanged: 0, failed: 0 },
      warnings: { FLUXGATE_RULE_SET_UNKNOWN: 6 },
      isStoreUp: true,
      breaker: 'CLOSED',
      ruleCounts: [{ ruleSetId: 'a"b\\c\nd', count: 2 }],
      waiting: 0,
      leasePermits: 0,
      holds: 0,
      reservations: 0,
      bans: [],
    })
  return { decide, collect }
}

const traceId = 'ab'.repeat(16)
const spanId = 'cd'.repeat(8)
const sampled = { traceparent: `00-${traceId}-${spanId}-01` }
const unsampled = { traceparent: `00-${'ef'.repeat(16)}-${spanId}-00` }

describe('OpenMetrics', () => {
  it('contains every metric with its type, help and unit, and counters without the suffix in the name of the family', () => {
    const { decide, collect } = processWith()
    decide('login', true, 0.004)
    const families = parseOpenMetrics(renderOpenMetrics(collect()))
    expect(families.map(({ name, type, help }) => [name, type, help])).toEqual(
      Object.entries(metricFamilies).map(([name, { type, help }]) => [name.replace(/_total$/, ''), type, help]),
    )
    const units = families.flatMap(({ name, unit }) => (unit === undefined ? [] : [[name, unit]]))
    expect(units).toEqual([['fluxgate_decision_duration_seconds', 'seconds']])
  })

  it('contains the same samples as the Prometheus text', () => {
    const { decide, collect } = processWith()
    decide('login', true, 0.004)
    decide('login', false, 3_000)
    const samples = parseOpenMetrics(renderOpenMetrics(collect())).flatMap((family) => family.samples)
    const lines = renderPrometheus(collect())
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    expect(samples.map(({ name, value }) => `${name} ${value}`)).toEqual(
      lines.map((line) => line.replace(/\{.*\}/, '')),
    )
    expect(samples.find(({ name }) => name === 'fluxgate_rules')?.labels).toEqual({ rule_set: 'a"b\\c\nd' })
  })

  it('writes the bounds of buckets in their canonical form', () => {
    const bounds = parseOpenMetrics(renderOpenMetrics(processWith().collect()))
      .flatMap((family) => family.samples)
      .flatMap(({ labels: { le } }) => le ?? [])
    expect(bounds).toEqual(
      '1e-06 2.5e-06 5e-06 1e-05 2.5e-05 5e-05 0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 1.0 +Inf'.split(
        ' ',
      ),
    )
  })

  it('has exemplars for requests with a sampled trace: on the bucket of the duration, and on the result of the rule', () => {
    const { decide, collect } = processWith()
    decide('login', true, 0.7, unsampled)
    decide('login', false, 4, sampled)
    decide('other', true, -1, sampled)
    const exemplars = parseOpenMetrics(renderOpenMetrics(collect()))
      .flatMap((family) => family.samples)
      .filter(({ exemplar }) => exemplar !== undefined)
      .map(({ name, labels, exemplar }) => [name, labels, exemplar])
    const labels = { trace_id: traceId, span_id: spanId }
    const at = 1_800_000_000.123
    expect(exemplars).toEqual([
      ['fluxgate_decisions_total', { rule_set: 'api', rule: 'login', result: 'denied' }, { labels, value: 1, at }],
      ['fluxgate_decisions_total', { rule_set: 'api', rule: 'other', result: 'allowed' }, { labels, value: 1, at }],
      ['fluxgate_decision_duration_seconds_bucket', { le: '0.005' }, { labels, value: 0.004, at }],
    ])
  })

  it('keeps the latest exemplar of several processes', () => {
    const [one, two] = [processWith(1_000), processWith(2_000)]
    one.decide('login', true, 0.7, { traceparent: `00-${'11'.repeat(16)}-${spanId}-01` })
    two.decide('login', true, 0.7, sampled)
    for (const order of [
      [one, two],
      [two, one],
    ]) {
      const merged = mergeMetrics(order.map(({ collect }) => collect()))
      const samples = parseOpenMetrics(renderOpenMetrics(merged)).flatMap((family) => family.samples)
      const exemplars = samples.flatMap(({ exemplar, value }) => (exemplar === undefined ? [] : [[exemplar, value]]))
      const exemplar = { labels: { trace_id: traceId, span_id: spanId }, at: 2 }
      expect(exemplars).toEqual([
        [{ ...exemplar, value: 1 }, 2],
        [{ ...exemplar, value: 0.0007 }, 2],
      ])
    }
  })
})

describe('/metrics', () => {
  const prometheus3 =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'

  it.each([
    [prometheus3, 'OPENMETRICS'],
    ['application/openmetrics-text', 'OPENMETRICS'],
    ['application/openmetrics-text; version="1.0.0", text/plain', 'OPENMETRICS'],
    ['application/openmetrics-text; version=0.0.1', 'PROMETHEUS'],
    ['application/openmetrics-text; version=2.0.0, text/plain;q=0.1', 'PROMETHEUS'],
    ['application/openmetrics-text;q=0.5, text/plain', 'PROMETHEUS'],
    ['application/openmetrics-text;q=0', 'PROMETHEUS'],
    ['application/openmetrics-text;q=many', 'PROMETHEUS'],
    ['text/html,*/*', 'PROMETHEUS'],
    ['', 'PROMETHEUS'],
    [undefined, 'PROMETHEUS'],
  ])('answers Accept: %s with %s', (accept, format) => {
    expect(negotiateFormat(accept)).toBe(format)
  })
})

it('the Prometheus text is valid for promtool, if it is installed', () => {
  const { decide, collect } = processWith()
  decide('login', true, 0.004, sampled)
  const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], {
    input: renderMetrics(collect()),
    encoding: 'utf8',
  })
  if (error !== undefined) return console.log('promtool is not installed: the Prometheus text is not checked by it.')
  expect(`${stdout}${stderr}`).toBe('')
  expect(status).toBe(0)
})
