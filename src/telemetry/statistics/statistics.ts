/**
 * Statistics of recent decisions for the statistics routes of the server and the console. Totals are exact. Keys and recent
 * decisions come from all decisions, or from a sample under high load.
 */
import type { Decision } from '../../core/decision.js'
import type { RequestContext } from '../../core/request-context.js'

/** Counts of decisions. Each decision is either allowed, delayed or denied. */
export interface DecisionCounts {
  readonly allowed: number
  /** Allowed after a wait. */
  readonly delayed: number
  readonly denied: number
  /** Rejections that `SHADOW` rules would have caused. */
  readonly shadowDenied: number
}

export interface RuleCounts extends DecisionCounts {
  /** Null if no rule set, or no single rule, decided. */
  readonly ruleSetId: string | null
  readonly ruleId: string | null
}

export interface StatisticsSummary {
  /** Start of the counts, in epoch milliseconds. */
  readonly sinceAt: number
  readonly totals: DecisionCounts & { readonly degraded: number }
  /** Most decisions first. */
  readonly rules: readonly RuleCounts[]
  /** One entry per second, oldest first; `at` is the end of the second. */
  readonly seconds: readonly (DecisionCounts & { readonly at: number })[]
}

/** The number of seconds in a summary. */
export const keptSeconds = 300

/** The order of rules in a summary. */
export const mostDecisionsFirst = (one: DecisionCounts, other: DecisionCounts): number =>
  decisionsOf(other) - decisionsOf(one)

const decisionsOf = ({ allowed, delayed, denied }: DecisionCounts): number => allowed + delayed + denied

/** The frequency of a key under one rule. Counts decay over time, and are estimates under high load. */
export interface KeyCount {
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  /** A digest, unless `revealKeys` is set. */
  readonly key: string
  readonly requests: number
  readonly denied: number
  readonly lastAt: number
}

export interface RecentDecision
  extends Pick<
    Decision,
    | 'allowed'
    | 'delayMs'
    | 'reason'
    | 'ruleSetId'
    | 'ruleId'
    | 'band'
    | 'key'
    | 'limit'
    | 'remaining'
    | 'retryAfterMs'
    | 'degraded'
  > {
  readonly at: number
  readonly method: string | null
  readonly path: string | null
  /** The trace ID of the request, from `traceparent` or `X-Trace-Id`. */
  readonly traceId: string | null
  /** The number of decisions that this one represents; 1 unless decisions are sampled. */
  readonly weight: number
}

/** Selects recent decisions. */
export interface RecentQuery {
  readonly limit: number
  /** Only allowed, or only rejected ones. */
  readonly allowed?: boolean | undefined
  readonly traceId?: string | undefined
}

/** Asynchronous, because the data may be shared by several processes. Callers may keep and modify the results. */
export interface Statistics {
  summary(): Promise<StatisticsSummary>
  /** Keys with the most rejections or requests. */
  top(query: { readonly by: 'denied' | 'requests'; readonly limit: number }): Promise<readonly KeyCount[]>
  /** Recently seen keys that start with `prefix`, most frequent first. The prefix of a digest matches too. */
  keys(query: { readonly prefix: string; readonly limit: number }): Promise<readonly KeyCount[]>
  /** A random sample of different, recently seen keys. */
  sample(query: { readonly limit: number }): Promise<readonly KeyCount[]>
  /** Newest first. Rejections are kept longer than allowed decisions. */
  recent(query: RecentQuery): Promise<readonly RecentDecision[]>
}

/** A sampled decision that represents `weight` decisions. */
export interface DecisionSample {
  readonly decision: Decision
  readonly context: RequestContext
  readonly at: number
  readonly weight: number
}
