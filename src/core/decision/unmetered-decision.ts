import type { Decision, Reason } from '../decision.js'

/** A decision that was made without a bucket. */
export function unmeteredDecision(
  allowed: boolean,
  reason: Reason,
  nowMs: number,
  details: Partial<
    Pick<Decision, 'ruleSetId' | 'ruleId' | 'key' | 'limit' | 'policy' | 'degraded' | 'degradedCause' | 'retryAfterMs'>
  > = {},
): Decision {
  return {
    allowed,
    delayMs: 0,
    reason,
    ruleSetId: null,
    ruleId: null,
    band: null,
    key: null,
    limit: -1,
    remaining: allowed ? -1 : 0,
    retryAfterMs: allowed ? 0 : null,
    resetAt: Math.ceil(nowMs),
    decidedAt: nowMs,
    policy: 'REJECT',
    degraded: false,
    bands: [],
    ...details,
  }
}
