import type { BandDecision, Decision } from '../decision.js'
import type { CheckOptions } from '../handler.js'

/** Options of `gate.explain`. */
export interface ExplainOptions extends Omit<CheckOptions, 'peek' | 'signal' | 'onEnter' | 'onLeave'> {
  /** The maximum number of rules in the result that do not apply; default 1000. Rules that apply are always listed. */
  readonly limit?: number | undefined
}

/**
 * The part that a rule has in a decision. MATCHED: it is charged, or reports in SHADOW mode. NOT_MATCHED: a condition failed.
 * DISABLED: `enabled` is false. NO_KEY: it is skipped, because the request has no key. MISSING_KEY: it rejects the request,
 * because the request has no key. PRECEDED: under `strategy: first`, a rule of higher priority applies instead.
 */
export type RuleStatus = 'MATCHED' | 'NOT_MATCHED' | 'DISABLED' | 'NO_KEY' | 'MISSING_KEY' | 'PRECEDED'

/** The first condition that excludes a rule. Conditions are evaluated in this order: `enabled`, `path`, `method`, `when`, key, `strategy`. */
export interface FailedCondition {
  /** The field of the rule or of the request: `enabled`, `path`, `method`, a field of `when`, a key field, or `strategy`. */
  readonly field: string
  /** The values that the rule accepts, at most 20. Empty if any value is accepted. */
  readonly expected: readonly string[]
  /** The value of the request, shortened to 256 characters; a list if the request has several; null if it has none. */
  readonly received: string | readonly string[] | null
}

/** One band of a bucket before the decision. */
export interface ExplainedBand extends Pick<BandDecision, 'label' | 'limit' | 'remaining' | 'resetAt' | 'windowMs'> {
  /** True if the band allows the request; null if the request is rejected without reading buckets. */
  readonly allowed: boolean | null
  /** Milliseconds until the band allows the request; null if it never will, or if `allowed` is null. */
  readonly retryAfterMs: number | null
}

/** The bucket of one key under a rule. */
export interface ExplainedBucket {
  /** The key that the rule counts. */
  readonly key: string
  /** True if the rule does not enforce its limit for this key. */
  readonly shadow: boolean
  /** The action of the key's override: LIMIT means other bands. Null without an override. */
  readonly override: 'LIMIT' | 'ALLOW' | 'DENY' | null
  /** The current levels. Empty if an override allows or denies the key, or if the state is unknown because the store fails. */
  readonly bands: readonly ExplainedBand[]
}

/** One rule in an explanation. */
export interface ExplainedRule {
  /** The id of the rule within its rule set. */
  readonly ruleId: string
  /** The name for people; null if the rule has none. */
  readonly name: string | null
  /** Rules with a higher priority come first. */
  readonly priority: number
  /** A rule in SHADOW mode is evaluated but rejects no request. */
  readonly mode: 'ENFORCE' | 'SHADOW'
  /** The part that the rule has in the decision. */
  readonly status: RuleStatus
  /** The first condition that failed; null if the rule matches. */
  readonly failed: FailedCondition | null
  /** The buckets of a matching rule: one, or one per interpretation of an ambiguous path. */
  readonly buckets: readonly ExplainedBucket[]
}

/** The result of `gate.explain`. */
export interface Explanation {
  /** The rule set that decides; null if the gate has no such rule set. */
  readonly ruleSetId: string | null
  /** The normalised path; several if servers interpret the path differently. */
  readonly paths: readonly string[]
  /** The rules of the set by descending priority, ties by id. */
  readonly rules: readonly ExplainedRule[]
  /** The number of rules that are left out because of `limit`. */
  readonly omitted: number
  /** The decision that a check would return. Nothing is charged. */
  readonly decision: Decision
}
