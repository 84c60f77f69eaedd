import type { BandDecision, Decision } from '../core/decision.js'
import { percentEncoded } from '../core/runtime/utf8.js'
import { type Dialects, dialectsOf, draft6, draft7, type HeaderChoice, unnamedPolicy } from './header-dialects.js'

/** The name of a band in headers and problem documents. */
export const policyName = (ruleId: string, label: string): string => `${ruleId}.${label}`

/** Rounds up, so that a client that waits this long does not retry too early. */
export const secondsUp = (ms: number): number => Math.ceil(ms / 1_000)

/** The constant parts of the headers of a deciding band. */
interface Policy {
  readonly label: string
  readonly bands: readonly BandDecision[]
  /** The value of RateLimit-Policy. */
  readonly policies: string
  /** The start of RateLimit, such as `"api.100-per-1m";r=`. */
  readonly prefix: string
  readonly limit: string
}

/** Bounds the cache of policies, for applications that keep creating rules. */
const maxPolicies = 1_000
/** Bounds the search for the policy of a decision, for rules whose limits depend on the request. */
const maxPoliciesPerRule = 16

/**
 * Writes the rate limit headers of decisions. In one response, the `t` of RateLimit, X-RateLimit-Reset and Retry-After name the
 * same time: when a rejected request may be retried, or otherwise when the bucket is full or its window ends.
 */
export class RateLimitHeaders {
  readonly #choice: HeaderChoice
  readonly #dialects: Dialects
  /** By rule ID. Rules are few and requests are many. */
  readonly #policies = new Map<string, Policy[]>()
  #policyCount = 0

  constructor(choice: HeaderChoice) {
    this.#choice = choice
    this.#dialects = dialectsOf(choice)
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
    if (this.#choice !== 'both') {
      const { draft, legacy } = this.#dialects
      const values = { policies, limit, remaining, seconds }
      return {
        ...(draft === 'standard' && { 'RateLimit-Policy': policies, RateLimit: rateLimit }),
        ...(draft === 'draft-6' && draft6(values)),
        ...(draft === 'draft-7' && draft7(values)),
        ...(legacy !== undefined && {
          'X-RateLimit-Limit': limit,
          'X-RateLimit-Remaining': remaining,
          'X-RateLimit-Reset': legacy === 'legacy' ? reset : String(seconds),
        }),
      }
    }
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
      policies: this.#policiesOf(bands),
      prefix: `${quoted(policyName(ruleId, label))};r=`,
      limit: String(limit),
    }
    if (this.#policyCount++ === maxPolicies) {
      this.#policies.clear()
      this.#policyCount = 1
    }
    const known = this.#policies.get(ruleId) ?? []
    this.#policies.set(ruleId, [policy, ...known.slice(0, maxPoliciesPerRule - 1)])
    return policy
  }

  /** Clients must not notice shadow bands. One decision may charge several buckets of the same band. */
  #policiesOf(bands: readonly BandDecision[]): string {
    const enforced = bands.filter(({ shadow }) => !shadow)
    if (this.#dialects.draft !== 'standard') return enforced.map(unnamedPolicy).join(', ')
    return [...new Set(enforced.map(namedPolicy))].join(', ')
  }
}

/** An item of RateLimit-Policy. A limit of requests in progress has no window. */
function namedPolicy({ ruleId, label, limit, windowMs }: BandDecision): string {
  const unit = windowMs === 0 ? 'qu="concurrent-requests"' : `w=${secondsUp(windowMs)}`
  return `${quoted(policyName(ruleId, label))};q=${limit};${unit}`
}

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

/** Like `EarlierHeaders`, for headers that are not on a response yet. */
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
  if (policies === undefined && earlier.getHeader('x-ratelimit-remaining') === undefined) return headers
  const merged: Record<string, string> = { ...headers }
  if (typeof policies === 'string' && headers['RateLimit-Policy'] !== undefined)
    merged['RateLimit-Policy'] = `${policies}, ${headers['RateLimit-Policy']}`
  if (isRejection) return merged
  if (remainingIn(earlier.getHeader('ratelimit')) <= remainingIn(headers.RateLimit)) delete merged.RateLimit
  for (const prefix of ['X-RateLimit', 'RateLimit']) {
    const remaining = numberOf(earlier.getHeader(`${prefix.toLowerCase()}-remaining`))
    if (remaining <= numberOf(headers[`${prefix}-Remaining`]))
      for (const name of ['Limit', 'Remaining', 'Reset']) delete merged[`${prefix}-${name}`]
  }
  return merged
}

/** The `r` of a RateLimit header, which draft 7 calls `remaining`. */
const remainingIn = (text: unknown): number =>
  numberOf(/(?:;r=(\d+);t=\d+|remaining=(\d+), reset=\d+)$/.exec(String(text))?.slice(1).find(Boolean))

/** A missing header does not restrict anything. */
const numberOf = (text: unknown): number => (text === undefined ? Number.POSITIVE_INFINITY : Number(text))
