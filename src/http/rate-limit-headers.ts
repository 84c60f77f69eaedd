import type { BandDecision, Decision } from '../core/decision.js'
import { percentEncoded } from '../core/runtime/utf8.js'

/** `standard` is RateLimit and RateLimit-Policy; `legacy` is X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. */
export type HeaderChoice = false | 'standard' | 'legacy' | 'both'

/** The name of a band in headers and problem documents. */
export const policyName = (ruleId: string, label: string): string => `${ruleId}.${label}`

/** Rounds up, so that a client that waits this long does not retry too early. */
export const secondsUp = (ms: number): number => Math.ceil(ms / 1_000)

/** The constant parts of the headers of a deciding band. */
interface Policy {
  readonly label: string
  readonly bands: readonly BandDecision[]
  /** The value of RateLimit-Policy: all bands but shadow bands, which clients must not notice. */
  readonly policies: string
  /** The start of RateLimit, such as `"api.100-per-1m";r=`. */
  readonly prefix: string
  readonly limit: string
}

/** Bounds the cache of policies, for applications that keep creating rules. */
const maxPolicies = 1_000

/**
 * Writes the rate limit headers of decisions. RateLimit follows draft 10 of the IETF. In one response, the `t` of RateLimit,
 * X-RateLimit-Reset and Retry-After name the same time: when a rejected request may be retried, or otherwise when the bucket
 * is full or its window ends.
 */
export class RateLimitHeaders {
  readonly #choice: HeaderChoice
  /** By rule ID. Rules are few and requests are many. */
  readonly #policies = new Map<string, Policy[]>()
  #policyCount = 0

  constructor(choice: HeaderChoice) {
    this.#choice = choice
  }

  of(decision: Decision, nowMs: number): Record<string, string> {
    const { allowed, ruleId, band, retryAfterMs } = decision
    const headers =
      this.#choice === false || ruleId === null || band === null ? {} : this.#write(decision, ruleId, band, nowMs)
    // Sent regardless of `headers`, so that a rejected client always knows when to retry.
    if (!allowed && retryAfterMs !== null) headers['Retry-After'] = String(Math.max(1, secondsUp(retryAfterMs)))
    return headers
  }

  /** Object literals, because adding one property after the other is slower than formatting the values. */
  #write(decision: Decision, ruleId: string, label: string, nowMs: number): Record<string, string> {
    const { policies, prefix, limit } = this.#policyOf(ruleId, label, decision)
    // Without a retry time, as for an allowed request, the headers describe the bucket.
    const waitMs = decision.allowed ? null : decision.retryAfterMs
    const resetAt = waitMs === null ? decision.resetAt : retryAt(decision.resetAt, waitMs, nowMs)
    const reset = String(secondsUp(resetAt))
    const remaining = String(Math.max(0, decision.remaining))
    if (this.#choice === 'legacy')
      return { 'X-RateLimit-Limit': limit, 'X-RateLimit-Remaining': remaining, 'X-RateLimit-Reset': reset }
    // Times of a decision are rounded up to whole milliseconds, so `nowMs` is rounded in the same way.
    const seconds = secondsUp(waitMs ?? Math.max(0, resetAt - Math.ceil(nowMs)))
    const rateLimit = `${prefix}${remaining};t=${seconds}`
    if (this.#choice === 'standard') return { 'RateLimit-Policy': policies, RateLimit: rateLimit }
    return {
      'RateLimit-Policy': policies,
      RateLimit: rateLimit,
      'X-RateLimit-Limit': limit,
      'X-RateLimit-Remaining': remaining,
      'X-RateLimit-Reset': reset,
    }
  }

  #policyOf(ruleId: string, label: string, { bands, limit }: Decision): Policy {
    for (const policy of this.#policies.get(ruleId) ?? [])
      if (policy.label === label && haveSamePolicy(policy.bands, bands)) return policy
    const policy: Policy = {
      label,
      bands,
      policies: bands
        .filter(({ shadow }) => !shadow)
        .map((one) => `${quoted(policyName(one.ruleId, one.label))};q=${one.limit};${unitOf(one)}`)
        .join(', '),
      prefix: `${quoted(policyName(ruleId, label))};r=`,
      limit: String(limit),
    }
    if (this.#policyCount++ === maxPolicies) {
      this.#policies.clear()
      this.#policyCount = 1
    }
    this.#policies.set(ruleId, [...(this.#policies.get(ruleId) ?? []), policy])
    return policy
  }
}

/** A limit of requests in progress has no window. */
const unitOf = ({ windowMs }: BandDecision): string =>
  windowMs === 0 ? 'qu="concurrent-requests"' : `w=${secondsUp(windowMs)}`

function haveSamePolicy(some: readonly BandDecision[], others: readonly BandDecision[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) {
    const a = some[i] as BandDecision
    const b = others[i] as BandDecision
    if (a.label !== b.label || a.ruleId !== b.ruleId || a.limit !== b.limit || a.windowMs !== b.windowMs) return false
    if (a.shadow !== b.shadow) return false
  }
  return true
}

/** A string of RFC 9651, which is printable ASCII. Other characters, possible in rules built in code, are percent-encoded. */
function quoted(text: string): string {
  const ascii = text.replaceAll(/[^ -~]/gu, percentEncoded)
  return `"${ascii.replaceAll(/["\\]/g, '\\$&')}"`
}

/** The maximum age of a decision when its headers are written: about the longest time that a store takes to reply. */
const maxDecisionAgeMs = 100

/** When a rejected request may be retried. A time just after the end of the window counts as the end of the window. */
function retryAt(resetAt: number, waitMs: number, nowMs: number): number {
  const retryAtMs = Math.ceil(nowMs) + waitMs
  return retryAtMs > resetAt && retryAtMs - resetAt <= maxDecisionAgeMs ? resetAt : retryAtMs
}

type Headers = Readonly<Record<string, string>>

/** A response on which an earlier limit may have set rate limit headers. */
export interface EarlierHeaders {
  /** Takes the lower-case name. */
  getHeader(name: string): unknown
}

/** As `EarlierHeaders`, for headers that are not on a response yet. */
export function earlierHeaders(headers: Headers): EarlierHeaders {
  const entries = Object.entries(headers)
  return { getHeader: (name) => entries.find(([known]) => known.toLowerCase() === name)?.[1] }
}

/**
 * Returns the headers to set on a response that several limits apply to. RateLimit-Policy lists the policies of all limits. The
 * other headers describe the limit with the fewest remaining permits, or the limit that rejects.
 */
export function mergeHeaders(headers: Headers, earlier: EarlierHeaders, isRejection: boolean): Headers {
  const policies = earlier.getHeader('ratelimit-policy')
  const remaining = earlier.getHeader('x-ratelimit-remaining')
  if (policies === undefined && remaining === undefined) return headers
  const merged: Record<string, string> = { ...headers }
  if (typeof policies === 'string' && headers['RateLimit-Policy'] !== undefined)
    merged['RateLimit-Policy'] = `${policies}, ${headers['RateLimit-Policy']}`
  if (isRejection) return merged
  if (remainingIn(earlier.getHeader('ratelimit')) <= remainingIn(headers.RateLimit)) delete merged.RateLimit
  if (numberOf(remaining) <= numberOf(headers['X-RateLimit-Remaining']))
    for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']) delete merged[name]
  return merged
}

/** The `r` of a RateLimit header. */
const remainingIn = (text: unknown): number => numberOf(/;r=(\d+);t=\d+$/.exec(String(text))?.[1])

/** A missing header does not restrict anything. */
const numberOf = (text: unknown): number => (text === undefined ? Number.POSITIVE_INFINITY : Number(text))
