/**
 * The metrics and their current samples. No client library is used: decisions increment plain numbers, and samples are
 * collected for each scrape. Label values are rule ids and constants, never values chosen by clients.
 */
import type { Outcome } from '../core/tracing/decision-event.js'
import { type DurationHistogram, durationBounds } from './duration-histogram.js'
import type { Exemplar } from './exemplar.js'
import { otherRules, type RuleCounters } from './rule-counters.js'

/** The description of a metric. */
export interface MetricFamily {
  /** The Prometheus type. */
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** The description of the metric in the `# HELP` line. */
  readonly help: string
  /** The label names, in order. */
  readonly labels: readonly string[]
}

/** A test compares these with docs/reference/metrics.md. */
export const metricFamilies = {
  fluxgate_decisions_total: {
    type: 'counter',
    help: 'Decisions by deciding rule; shadow_denied counts rejections that SHADOW rules would have caused.',
    labels: ['rule_set', 'rule', 'result'],
  },
  fluxgate_decision_duration_seconds: {
    type: 'histogram',
    help: 'Duration of decisions, without the time for which a request is held.',
    labels: [],
  },
  fluxgate_store_errors_total: {
    type: 'counter',
    help: 'Failed calls to the bucket store, by kind.',
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
    help: '1 if the bucket store can decide, else 0; probed at most once per second.',
    labels: [],
  },
  fluxgate_rule_reloads_total: {
    type: 'counter',
    help: 'Rule reloads by result: changed, unchanged or failed.',
    labels: ['result'],
  },
  fluxgate_warnings_total: {
    type: 'counter',
    help: 'Likely misconfigurations that were noticed while requests were decided, by code.',
    labels: ['code'],
  },
  fluxgate_rules: { type: 'gauge', help: 'Rules in use.', labels: ['rule_set'] },
  fluxgate_waiting_requests: { type: 'gauge', help: 'Requests that are waiting for permits.', labels: [] },
  fluxgate_lease_permits: {
    type: 'gauge',
    help: 'Leased permits that this process has not used yet.',
    labels: [],
  },
  fluxgate_holds: {
    type: 'gauge',
    help: 'Holds of CONCURRENCY rules that this process has taken and that are neither released nor expired. At most the last 100,000 are counted.',
    labels: [],
  },
  fluxgate_reservations: {
    type: 'gauge',
    help: 'Reservations that this process has made and that are neither settled, canceled nor expired. At most the last 100,000 are counted.',
    labels: [],
  },
  fluxgate_bans_total: {
    type: 'counter',
    help: 'Bans that decisions have started. Bans set by hand are not counted.',
    labels: ['rule_set', 'rule'],
  },
} as const satisfies Record<string, MetricFamily>

export type MetricName = keyof typeof metricFamilies

export interface MetricsSource {
  readonly counters: RuleCounters
  readonly durations: DurationHistogram
  readonly storeErrors: Readonly<Record<string, number>>
  readonly reloads: Readonly<Record<string, number>>
  readonly warnings: Readonly<Record<string, number>>
  readonly isStoreUp: boolean
  readonly breaker: 'CLOSED' | 'HALF_OPEN' | 'OPEN'
  readonly ruleCounts: readonly { readonly ruleSetId: string; readonly count: number }[]
  readonly waiting: number
  readonly leasePermits: number
  readonly holds: number
  readonly reservations: number
  readonly bans: readonly { readonly ruleSetId: string; readonly ruleId: string; readonly count: number }[]
}

/** Bounds the number of series, because programs may create any number of rule sets. */
const mostRuleSets = 1_000

/** One metric with its current samples. */
export interface CollectedMetric extends MetricFamily {
  /** The metric name, such as `fluxgate_decisions_total`. */
  readonly name: string
  /** The current values, one per combination of labels. */
  readonly samples: readonly {
    /** The metric name; for histograms with the suffix `_bucket`, `_sum` or `_count`. */
    readonly name: string
    /** Values by label name. */
    readonly labels: Readonly<Record<string, string>>
    /** The current value. */
    readonly value: number
    /** A sampled trace that was counted by this sample. */
    readonly exemplar?: Exemplar | undefined
  }[]
}

/** All metrics with their current samples. */
export const collectMetrics = (source: MetricsSource): CollectedMetric[] =>
  (Object.keys(metricFamilies) as MetricName[]).map((name) => {
    const family = metricFamilies[name]
    const samples = samplesOf[name](source).map(([suffix, values, value, exemplar]) => {
      const labelNames: readonly string[] = suffix === '_bucket' ? ['le'] : family.labels
      const labels = Object.fromEntries(values.map((label, i) => [labelNames[i] as string, label]))
      return { name: `${name}${suffix}`, labels, value, ...(exemplar && { exemplar }) }
    })
    return { name, ...family, samples }
  })

/** The suffix of the metric name, the label values in order, and the value. */
type Sample = readonly [suffix: string, labels: readonly string[], value: number, exemplar?: Exemplar | undefined]

const single = (value: number): Sample[] => [['', [], value]]
const byLabel = (counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([label, value]) => ['', [label], value])

const samplesOf: { readonly [Name in MetricName]: (source: MetricsSource) => readonly Sample[] } = {
  fluxgate_decisions_total: ({ counters }) =>
    counters.counted().flatMap(({ ruleSetId, ruleId, allowed, denied, shadowDenied, delayed, exemplars }) => {
      const results = { allowed, denied, shadow_denied: shadowDenied, delayed }
      return Object.entries(results).map(
        ([result, value]): Sample => ['', [ruleSetId ?? '', ruleId ?? '', result], value, exemplars[result as Outcome]],
      )
    }),
  fluxgate_decision_duration_seconds({ durations }) {
    const { cumulative, count, sumSeconds } = durations.read()
    const buckets = cumulative.map(
      (value, i): Sample => ['_bucket', [String(durationBounds[i] ?? '+Inf')], value, durations.exemplars[i]],
    )
    return [...buckets, ['_sum', [], sumSeconds], ['_count', [], count]]
  },
  fluxgate_store_errors_total: ({ storeErrors }) => byLabel(storeErrors),
  fluxgate_degraded_decisions_total: ({ counters }) => single(counters.degraded),
  fluxgate_breaker_state: ({ breaker }) => single({ CLOSED: 0, HALF_OPEN: 1, OPEN: 2 }[breaker]),
  fluxgate_store_up: ({ isStoreUp }) => single(isStoreUp ? 1 : 0),
  fluxgate_rule_reloads_total: ({ reloads }) => byLabel(reloads),
  fluxgate_warnings_total: ({ warnings }) => byLabel(warnings),
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
  fluxgate_holds: ({ holds }) => single(holds),
  fluxgate_reservations: ({ reservations }) => single(reservations),
  fluxgate_bans_total: ({ bans }) =>
    bans.map(({ ruleSetId, ruleId, count }): Sample => ['', [ruleSetId, ruleId], count]),
}
