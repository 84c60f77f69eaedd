import { ticksPerMs } from './clock.js'
import type { Policy } from './rule.js'

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

export interface BandDecision {
  readonly ruleId: string
  readonly label: string
  readonly key: string
  readonly limit: number
  readonly remaining: number
  readonly resetAt: number
  readonly retryAfterMs: number | null
  readonly allowed: boolean
  readonly shadow: boolean
  readonly windowMs: number
}

export interface Decision {
  readonly allowed: boolean
  /** Allowed, but only after this long. */
  readonly delayMs: number
  readonly reason: Reason
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  readonly band: string | null
  readonly key: string | null
  readonly limit: number
  /** -1 when nothing limits. */
  readonly remaining: number
  /** 0 if allowed; null if this request can never succeed. */
  readonly retryAfterMs: number | null
  /** Epoch milliseconds. */
  readonly resetAt: number
  readonly policy: Policy
  /** Answered without the shared store. */
  readonly degraded: boolean
  readonly bands: readonly BandDecision[]
}

/** Ticks as a decision's `retryAfterMs`: in whole milliseconds, rounded up; null for never. */
export const untilRetryMs = (ticks: number): number | null =>
  ticks === Number.POSITIVE_INFINITY ? null : Math.ceil(ticks / ticksPerMs)
