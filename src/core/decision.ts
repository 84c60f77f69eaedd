import { ticksPerMs } from './clock.js'
import type { Policy } from './rule.js'

/** Why a request was allowed or rejected. */
export type Reason =
  | 'ALLOWED'
  | 'LIMITED'
  | 'IMPOSSIBLE'
  | 'MISSING_KEY'
  | 'NO_RULE'
  | 'NO_RULE_SET'
  | 'STORE_FAILURE'
  | 'ALLOW_LISTED'
  | 'DENY_LISTED'

/** The state of one band after a decision. */
export interface BandDecision {
  readonly ruleId: string
  readonly label: string
  readonly key: string
  /** The capacity of the band. */
  readonly limit: number
  /** Whole permits left. */
  readonly remaining: number
  /** Epoch milliseconds at which the bucket is full or its window ends. */
  readonly resetAt: number
  /** Milliseconds until this band allows the request. 0 if it does now, null if it never will. */
  readonly retryAfterMs: number | null
  readonly allowed: boolean
  /** True for a rule in SHADOW mode, which never rejects. */
  readonly shadow: boolean
  readonly windowMs: number
}

/**
 * The answer to one check. `ruleId`, `band`, `key`, `limit`, `remaining` and `resetAt` describe the deciding band: the
 * rejecting band with the longest retry-after, or the most restrictive band of an allowed request.
 */
export interface Decision {
  readonly allowed: boolean
  /** Milliseconds that an allowed request must wait before it proceeds (leaky bucket, WAIT_FOR_REFILL); otherwise 0. */
  readonly delayMs: number
  readonly reason: Reason
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  /** The label of the deciding band. */
  readonly band: string | null
  readonly key: string | null
  /** The capacity of the deciding band, -1 if no band applies. */
  readonly limit: number
  /** Whole permits left, -1 if no band applies. */
  readonly remaining: number
  /** Milliseconds after which this request, retried alone, is allowed. 0 if allowed, null if it can never succeed. */
  readonly retryAfterMs: number | null
  /** Epoch milliseconds at which the bucket is full or its window ends. */
  readonly resetAt: number
  readonly policy: Policy
  /** True if the decision was made without the shared store. */
  readonly degraded: boolean
  /** Every band of every matching rule. */
  readonly bands: readonly BandDecision[]
}

/** Converts ticks to `retryAfterMs`: whole milliseconds, rounded up, or null for never. */
export const untilRetryMs = (ticks: number): number | null =>
  ticks === Number.POSITIVE_INFINITY ? null : Math.ceil(ticks / ticksPerMs)
