import type { Decision } from '../core/decision.js'
import { secondsUp } from './policy.js'
import { policyTextOf } from './policy-text.js'

/** `standard` is RateLimit and RateLimit-Policy, `legacy` the X-RateLimit ones. */
export type HeaderChoice = false | 'standard' | 'legacy' | 'both'

/**
 * What a response says about its limits. `RateLimit` follows draft 10 of the IETF; of one response, its `t`,
 * `X-RateLimit-Reset` and `Retry-After` name the same instant: when a refused request may come back, or else when the
 * bucket is full or its window ends. Shadow bands are not mentioned: to the caller they do not exist.
 */
export function rateLimitHeaders(decision: Decision, which: HeaderChoice, nowMs: number): Record<string, string> {
  const headers: Record<string, string> = {}
  const { allowed, ruleId, band, limit, remaining, retryAfterMs } = decision
  if (which !== false && ruleId !== null && band !== null) {
    const openAtMs = openAt(decision, nowMs)
    const left = String(Math.max(0, remaining))
    if (which !== 'legacy') {
      const { policies, name } = policyTextOf(ruleId, band, decision)
      // Instants of a decision are whole milliseconds, rounded up; so must be what they are compared with.
      const leftMs = Math.max(0, openAtMs - Math.ceil(nowMs))
      headers['RateLimit-Policy'] = policies
      headers.RateLimit = `${name};r=${left};t=${secondsUp(leftMs)}`
    }
    if (which !== 'standard') {
      headers['X-RateLimit-Limit'] = String(limit)
      headers['X-RateLimit-Remaining'] = left
      headers['X-RateLimit-Reset'] = String(secondsUp(openAtMs))
    }
  }
  // Part of the refusal rather than of the limits, so that clients wait also where limits are not told.
  if (!allowed && retryAfterMs !== null) headers['Retry-After'] = String(Math.max(1, secondsUp(retryAfterMs)))
  return headers
}

/** Epoch milliseconds. */
function openAt({ allowed, retryAfterMs, resetAt }: Decision, nowMs: number): number {
  return allowed || retryAfterMs === null ? resetAt : Math.ceil(nowMs) + retryAfterMs
}
