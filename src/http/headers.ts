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
  const { allowed, ruleId, band, retryAfterMs } = decision
  const headers = which === false || ruleId === null || band === null ? {} : told(decision, ruleId, band, which, nowMs)
  // Part of the refusal rather than of the limits, so that clients wait also where limits are not told.
  if (!allowed && retryAfterMs !== null) headers['Retry-After'] = String(Math.max(1, secondsUp(retryAfterMs)))
  return headers
}

/** Objects are spelt out: one that grows by a name at a time costs a request more than the texts do. */
function told(
  decision: Decision,
  ruleId: string,
  band: string,
  which: Exclude<HeaderChoice, false>,
  nowMs: number,
): Record<string, string> {
  const { policies, name, limit } = policyTextOf(ruleId, band, decision)
  const openAtMs = openAt(decision, nowMs)
  // Instants of a decision are whole milliseconds, rounded up; so must be what they are compared with.
  const leftMs = Math.max(0, openAtMs - Math.ceil(nowMs))
  const left = String(Math.max(0, decision.remaining))
  const speaking = which === 'legacy' ? '' : `${name};r=${left};t=${secondsUp(leftMs)}`
  if (which === 'standard') return { 'RateLimit-Policy': policies, RateLimit: speaking }
  const reset = String(secondsUp(openAtMs))
  if (which === 'legacy')
    return { 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': left, 'X-RateLimit-Reset': reset }
  return {
    'RateLimit-Policy': policies,
    RateLimit: speaking,
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': left,
    'X-RateLimit-Reset': reset,
  }
}

/** Epoch milliseconds. */
function openAt({ allowed, retryAfterMs, resetAt }: Decision, nowMs: number): number {
  return allowed || retryAfterMs === null ? resetAt : Math.ceil(nowMs) + retryAfterMs
}
