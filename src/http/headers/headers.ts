import type { Decision } from '../../core/decision.js'
import { countText } from './count-text.js'
import { keepingLatest } from './latest-text.js'
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

const resetText = keepingLatest(String)

/** Objects are spelt out: one that grows by a name at a time costs a request more than the texts do. */
function told(
  decision: Decision,
  ruleId: string,
  band: string,
  which: Exclude<HeaderChoice, false>,
  nowMs: number,
): Record<string, string> {
  const { policies, speaker, limit } = policyTextOf(ruleId, band, decision)
  // Null if it is refused for ever: then, as for a request that passes, the headers tell of the bucket.
  const waitMs = decision.allowed ? null : decision.retryAfterMs
  const openAtMs = waitMs === null ? decision.resetAt : openAt(decision.resetAt, waitMs, nowMs)
  // Instants of a decision are whole milliseconds, rounded up; so must be what they are compared with.
  const leftMs = waitMs ?? Math.max(0, openAtMs - Math.ceil(nowMs))
  const left = Math.max(0, decision.remaining)
  const reset = resetText(secondsUp(openAtMs))
  if (which === 'legacy')
    return { 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': countText(left), 'X-RateLimit-Reset': reset }
  const speaking = speaker.write(left, secondsUp(leftMs))
  if (which === 'standard') return { 'RateLimit-Policy': policies, RateLimit: speaking }
  return {
    'RateLimit-Policy': policies,
    RateLimit: speaking,
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': speaker.leftIn(speaking),
    'X-RateLimit-Reset': reset,
  }
}

/** A decision is a little old when it is told: at most about as old as a store may take to answer. */
const mostAgeMs = 100

/** When a refused request may come back. What seems to open just after its window has ended opens with that end. */
function openAt(resetAt: number, waitMs: number, nowMs: number): number {
  const openAtMs = Math.ceil(nowMs) + waitMs
  return openAtMs > resetAt && openAtMs - resetAt <= mostAgeMs ? resetAt : openAtMs
}
