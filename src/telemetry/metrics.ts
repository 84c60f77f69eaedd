/**
 * The Prometheus text format, version 0.0.4, written by hand: what is counted on a decision's path is a plain number, and
 * text is made when somebody asks. Label values are ids of rules and words of this program, never what a client chose.
 */
import { type DurationHistogram, durationBounds } from './duration-histogram.js'
import { otherRules, type RuleCounters } from './rule-counters.js'

export interface MetricFamily {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

/** docs/reference/metrics.md lists the same, which a test compares. */
export const metricFamilies = {
  fluxgate_decisions_total: {
    type: 'counter',
    help: 'Decisions by the rule that decided; shadow_denied counts what rules in SHADOW would have refused.',
    labels: ['rule_set', 'rule', 'result'],
  },
  fluxgate_decision_duration_seconds: {
    type: 'histogram',
    help: 'How long decisions took, without the time that a request is held.',
    labels: [],
  },
  fluxgate_store_errors_total: {
    type: 'counter',
    help: 'Calls to the bucket store that failed, by kind.',
    labels: ['kind'],
  },
  fluxgate_degraded_decisions_total: {
    type: 'counter',
    help: 'Decisions made without the shared store.',
    labels: [],
  },
  fluxgate_breaker_state: {
    type: 'gauge',
    help: 'Circuit breaker of the bucket store: 0 closed, 1 half open, 2 open.',
    labels: [],
  },
  fluxgate_store_up: {
    type: 'gauge',
    help: 'Whether the bucket store can decide, by a probe at most once per second: 1 yes, 0 no.',
    labels: [],
  },
  fluxgate_rule_reloads_total: {
    type: 'counter',
    help: 'Reloads of the rules by their result: changed, unchanged or failed.',
    labels: ['result'],
  },
  fluxgate_rules: { type: 'gauge', help: 'Rules in force.', labels: ['rule_set'] },
  fluxgate_waiting_requests: { type: 'gauge', help: 'Requests that are held until their time.', labels: [] },
  fluxgate_lease_permits: {
    type: 'gauge',
    help: 'Permits paid for in advance that this process may still spend.',
    labels: [],
  },
} as const satisfies Record<string, MetricFamily>

export type MetricName = keyof typeof metricFamilies

export interface MetricsSource {
  readonly counters: RuleCounters
  readonly durations: DurationHistogram
  readonly storeErrors: Readonly<Record<string, number>>
  readonly reloads: Readonly<Record<string, number>>
  readonly isStoreUp: boolean
  readonly breaker: 'CLOSED' | 'HALF_OPEN' | 'OPEN'
  readonly ruleCounts: readonly { readonly ruleSetId: string; readonly count: number }[]
  readonly waiting: number
  readonly leasePermits: number
}

export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

/** Rule sets are few where people write them; a program may write any number. */
const mostRuleSets = 1_000

export function renderMetrics(source: MetricsSource): string {
  const lines: string[] = []
  for (const name of Object.keys(metricFamilies) as MetricName[]) {
    const { type, help, labels } = metricFamilies[name]
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
    for (const [suffix, values, value] of samplesOf[name](source))
      lines.push(`${name}${suffix}${labelText(suffix === '_bucket' ? ['le'] : labels, values)} ${value}`)
  }
  return `${lines.join('\n')}\n`
}

/** The end of the name, values of its labels in their order, and the number. */
type Sample = readonly [suffix: string, labels: readonly string[], value: number]

const single = (value: number): Sample[] => [['', [], value]]
const byLabel = (counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([label, value]) => ['', [label], value])

const samplesOf: { readonly [Name in MetricName]: (source: MetricsSource) => readonly Sample[] } = {
  fluxgate_decisions_total: ({ counters }) =>
    counters.rows().flatMap(({ ruleSetId, ruleId, allowed, denied, shadowDenied, delayed }) => {
      const results = { allowed, denied, shadow_denied: shadowDenied, delayed }
      return Object.entries(results).map(
        ([result, value]): Sample => ['', [ruleSetId ?? '', ruleId ?? '', result], value],
      )
    }),
  fluxgate_decision_duration_seconds({ durations }) {
    const { cumulative, count, sumSeconds } = durations.read()
    const buckets = cumulative.map((value, i): Sample => ['_bucket', [String(durationBounds[i] ?? '+Inf')], value])
    return [...buckets, ['_sum', [], sumSeconds], ['_count', [], count]]
  },
  fluxgate_store_errors_total: ({ storeErrors }) => byLabel(storeErrors),
  fluxgate_degraded_decisions_total: ({ counters }) => single(counters.degraded),
  fluxgate_breaker_state: ({ breaker }) => single({ CLOSED: 0, HALF_OPEN: 1, OPEN: 2 }[breaker]),
  fluxgate_store_up: ({ isStoreUp }) => single(isStoreUp ? 1 : 0),
  fluxgate_rule_reloads_total: ({ reloads }) => byLabel(reloads),
  fluxgate_rules({ ruleCounts }) {
    const counts = new Map<string, number>()
    for (const [i, { ruleSetId, count }] of ruleCounts.entries()) {
      const name = i < mostRuleSets ? ruleSetId : otherRules
      counts.set(name, (counts.get(name) ?? 0) + count)
    }
    return [...counts].map(([ruleSetId, count]): Sample => ['', [ruleSetId], count])
  },
  fluxgate_waiting_requests: ({ waiting }) => single(waiting),
  fluxgate_lease_permits: ({ leasePermits }) => single(leasePermits),
}

function labelText(names: readonly string[], values: readonly string[]): string {
  if (values.length === 0) return ''
  return `{${values.map((value, i) => `${names[i]}="${escaped(value)}"`).join(',')}}`
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
