import { ticksPerMs } from './clock.js'
import type { ErrorCode } from './errors.js'
import type { Policy } from './rule.js'

/** Why a request was allowed or rejected. */
export type Reason =
  | 'ALLOWED'
  | 'LIMITED'
  | 'BANNED'
  | 'IMPOSSIBLE'
  | 'MISSING_KEY'
  | 'NO_RULE'
  | 'NO_RULE_SET'
  | 'STORE_FAILURE'
  | 'ALLOW_LISTED'
  | 'DENY_LISTED'

/** The state of one band after a decision. */
export interface BandDecision {
  /** The id of the rule. */
  readonly ruleId: string
  /** The label of the band, unique within the rule. */
  readonly label: string
  /** The key that is limited. */
  readonly key: string
  /** The capacity of the band. */
  readonly limit: number
  /** Whole permits left. */
  readonly remaining: number
  /** Epoch milliseconds at which the bucket is full or its window ends. */
  readonly resetAt: number
  /** Milliseconds until this band allows the request. 0 if it does now, null if it never will. */
  readonly retryAfterMs: number | null
  /** True if this band allows the request. */
  readonly allowed: boolean
  /** True for a rule in SHADOW mode, which never rejects. */
  readonly shadow: boolean
  /** The window of the band in milliseconds; 0 for CONCURRENCY, which has none. */
  readonly windowMs: number
}

/**
 * The answer to one check. `ruleId`, `band`, `key`, `limit`, `remaining` and `resetAt` describe the deciding band: the
 * rejecting band with the longest retry-after, or the most restrictive band of an allowed request.
 */
export interface Decision {
  /** True if the request may proceed, after `delayMs`. */
  readonly allowed: boolean
  /** Milliseconds that an allowed request must wait before it proceeds (leaky bucket, WAIT_FOR_REFILL); otherwise 0. */
  readonly delayMs: number
  /** Why the request was allowed or rejected. */
  readonly reason: Reason
  /** The rule set that decided; null if the request has no rule set. */
  readonly ruleSetId: string | null
  /** The rule of the deciding band; null if no rule applies. */
  readonly ruleId: string | null
  /** The label of the deciding band. */
  readonly band: string | null
  /** The key of the deciding band; null if no rule applies. */
  readonly key: string | null
  /** The capacity of the deciding band, -1 if no band applies. */
  readonly limit: number
  /** Whole permits left, -1 if no band applies. */
  readonly remaining: number
  /** Milliseconds after which this request, retried alone, is allowed. 0 if allowed, null if it can never succeed. */
  readonly retryAfterMs: number | null
  /** Epoch milliseconds at which the bucket is full or its window ends. */
  readonly resetAt: number
  /** When the store decided, by its clock: epoch milliseconds, with a fraction. */
  readonly decidedAt: number
  /** How the deciding rule treats requests over the limit. */
  readonly policy: Policy
  /** Set for a consume with `partial`: the permits that were taken, or 0. */
  readonly granted?: number
  /** True if the decision was made without the shared store. */
  readonly degraded: boolean
  /** Set if `degraded` is true and the error is known: its code, such as `FLUXGATE_STORE_TIMEOUT`. */
  readonly degradedCause?: ErrorCode
  /** Every band of every matching rule. */
  readonly bands: readonly BandDecision[]
  /** Identifies the slots that an allowed request occupies under rules with the algorithm CONCURRENCY. Release it when the work ends. */
  readonly holdId?: string
}

/** Converts ticks to `retryAfterMs`: whole milliseconds, rounded up, or null for never. */
export const untilRetryMs = (ticks: number): number | null =>
  ticks === Number.POSITIVE_INFINITY ? null : Math.ceil(ticks / ticksPerMs)
