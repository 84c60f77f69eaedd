/**
 * What has happened lately, for people who look at it: the server's statistics routes and the console. Nothing here is on
 * a decision's path: decisions are counted exactly, and every one of them, or a sample of many, tells who asked.
 */
import type { Decision } from '../../core/decision.js'
import type { RequestContext } from '../../core/request-context.js'

/** Each decision is one of allowed, delayed and denied. */
export interface DecisionCounts {
  readonly allowed: number
  /** Allowed, but only after a while. */
  readonly delayed: number
  readonly denied: number
  /** How often a rule in SHADOW would have refused. */
  readonly shadowDenied: number
}

export interface RuleCounts extends DecisionCounts {
  /** Null where no rule set, or no single rule, decided. */
  readonly ruleSetId: string | null
  readonly ruleId: string | null
}

export interface StatisticsSummary {
  /** Epoch milliseconds from which on everything is counted. */
  readonly sinceAt: number
  readonly totals: DecisionCounts & { readonly degraded: number }
  /** Most decisions first. */
  readonly rules: readonly RuleCounts[]
  /** One for each second that has passed, oldest first; `at` is when it ended. */
  readonly seconds: readonly (DecisionCounts & { readonly at: number })[]
}

/** How many seconds a summary goes back. */
export const keptSeconds = 300

/** The order of rules in a summary. */
export const mostDecisionsFirst = (one: DecisionCounts, other: DecisionCounts): number =>
  decisionsOf(other) - decisionsOf(one)

const decisionsOf = ({ allowed, delayed, denied }: DecisionCounts): number => allowed + delayed + denied

/** How often one identity was seen under one rule. Old requests count less and less, and many requests are estimated. */
export interface KeyCount {
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  /** A digest, unless keys may be shown. */
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
  /** How many decisions this one stands for: 1, unless there are too many to show. */
  readonly weight: number
}

/** Asynchronous, because several processes may share one. Answers are for the one who asks to keep. */
export interface Statistics {
  summary(): Promise<StatisticsSummary>
  /** Who was refused most, or who asked most. */
  top(query: { readonly by: 'denied' | 'requests'; readonly limit: number }): Promise<readonly KeyCount[]>
  /** Identities seen lately that begin with `prefix`, the most frequent first; a prefix of the digest finds it too. */
  keys(query: { readonly prefix: string; readonly limit: number }): Promise<readonly KeyCount[]>
  /** Identities seen lately that chance picks, all different. */
  sample(query: { readonly limit: number }): Promise<readonly KeyCount[]>
  /** Newest first. */
  recent(query: { readonly limit: number }): Promise<readonly RecentDecision[]>
}

/** One decision that stands for `weight` of them. */
export interface DecisionSample {
  readonly decision: Decision
  readonly context: RequestContext
  readonly at: number
  readonly weight: number
}
