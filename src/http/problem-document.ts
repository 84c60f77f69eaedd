import type { Decision } from '../core/decision.js'
import { policyName, secondsUp } from './rate-limit-headers.js'

/** A problem document (RFC 9457) of a rejected request. It names the limits, but not the key that they apply to. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  /** The bands that reject the request, as `<rule>.<label>`. */
  readonly 'violated-policies'?: readonly string[]
  /** Null if the request can never succeed. */
  readonly retryAfterMs: number | null
}

export const problemMediaType = 'application/problem+json'

const types = 'https://iana.org/assignments/http-problem-types'

/** The body of a rejection: 429, or 503 if the store fails and the rule rejects requests during a failure. */
export function rejectionProblem(decision: Decision): Problem {
  const { reason, retryAfterMs } = decision
  if (reason === 'STORE_FAILURE')
    return {
      type: `${types}#temporary-reduced-capacity`,
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      detail: withRetry(
        'Rate limits cannot be checked at the moment, and this request is not allowed without a check.',
        decision,
      ),
      retryAfterMs,
    }
  return {
    type: `${types}#quota-exceeded`,
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    detail: detailOf(decision),
    'violated-policies': violatedPolicies(decision),
    retryAfterMs,
  }
}

/** The body for delayed requests when the server stops. */
export const closingProblem = (): Problem => ({
  type: `${types}#temporary-reduced-capacity`,
  title: 'Request cannot be satisfied due to temporary server capacity constraints',
  status: 503,
  detail: 'The server is stopping and cannot hold this delayed request. Try again in 1 s.',
  retryAfterMs: 1_000,
})

function detailOf(decision: Decision): string {
  const { reason, ruleId, band, limit } = decision
  const policy = ruleId === null || band === null ? 'a limit' : `"${policyName(ruleId, band)}"`
  switch (reason) {
    case 'LIMITED':
      return withRetry(`The limit ${policy} of ${limit} is exhausted.`, decision)
    case 'BANNED':
      return withRetry('This client is banned because of repeated rejections.', decision)
    case 'IMPOSSIBLE':
      return `The cost of this request exceeds the capacity ${limit} of the limit ${policy}.`
    case 'MISSING_KEY':
      return `The rule "${ruleId}" requires a client identity, which this request does not contain.`
    case 'DENY_LISTED':
      return 'Requests of this client are blocked.'
    default:
      return 'No rule allows this request.'
  }
}

function withRetry(sentence: string, { retryAfterMs }: Decision): string {
  return retryAfterMs === null ? sentence : `${sentence} Try again in ${Math.max(1, secondsUp(retryAfterMs))} s.`
}

function violatedPolicies({ bands }: Decision): readonly string[] {
  return bands
    .filter(({ shadow, allowed }) => !shadow && !allowed)
    .map(({ ruleId, label }) => policyName(ruleId, label))
}
