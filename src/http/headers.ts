import type { Decision } from '../core/decision.js'
import { policyName, secondsUp } from './policy.js'

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
    // Instants of a decision are whole milliseconds, rounded up; so must be what they are compared with.
    const leftMs = Math.max(0, openAt(decision, nowMs) - Math.ceil(nowMs))
    if (which !== 'legacy') {
      headers['RateLimit-Policy'] = policies(decision)
      headers.RateLimit = `${sfString(policyName(ruleId, band))};r=${Math.max(0, remaining)};t=${secondsUp(leftMs)}`
    }
    if (which !== 'standard') {
      headers['X-RateLimit-Limit'] = String(limit)
      headers['X-RateLimit-Remaining'] = String(Math.max(0, remaining))
      headers['X-RateLimit-Reset'] = String(secondsUp(openAt(decision, nowMs)))
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

function policies({ bands }: Decision): string {
  return bands
    .filter(({ shadow }) => !shadow)
    .map(({ ruleId, label, limit, windowMs }) => {
      return `${sfString(policyName(ruleId, label))};q=${limit};w=${secondsUp(windowMs)}`
    })
    .join(', ')
}

/** A string of RFC 9651, which is printable ASCII. Anything else, from rules that no document was parsed for, is percent-encoded. */
function sfString(text: string): string {
  const ascii = text.replaceAll(/[^ -~]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )
  return `"${ascii.replaceAll(/["\\]/g, '\\$&')}"`
}
