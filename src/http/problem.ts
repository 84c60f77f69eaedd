import type { Decision } from '../core/decision.js'
import { policyName, secondsUp } from './headers/rate-limit-headers.js'

/** RFC 9457, as `application/problem+json`. Says which limits were met, and nothing about whom they count against. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: 429 | 503
  readonly detail: string
  /** The refusing bands, `<rule>.<label>`. */
  readonly 'violated-policies'?: readonly string[]
  /** Null: this request can never succeed. */
  readonly retryAfterMs: number | null
}

export const problemMediaType = 'application/problem+json'

const types = 'https://iana.org/assignments/http-problem-types'

/** The body of a refusal: 429, or 503 where the limiter could not count and the rule refuses without it. */
export function rejectionProblem(decision: Decision): Problem {
  const { reason, retryAfterMs } = decision
  if (reason === 'STORE_FAILURE')
    return {
      type: `${types}#temporary-reduced-capacity`,
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      detail: withRetry(
        'Requests cannot be counted at the moment, and this one is not let through uncounted.',
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

/** For requests that were held when everything was shut down. */
export const closingProblem = (): Problem => ({
  type: `${types}#temporary-reduced-capacity`,
  title: 'Request cannot be satisfied due to temporary server capacity constraints',
  status: 503,
  detail: 'The server is stopping, and this request had to wait for its turn. Try again in 1 s.',
  retryAfterMs: 1_000,
})

function detailOf(decision: Decision): string {
  const { reason, ruleId, band, limit } = decision
  const policy = ruleId === null || band === null ? 'a limit' : `"${policyName(ruleId, band)}"`
  switch (reason) {
    case 'LIMITED':
      return withRetry(`The limit ${policy} of ${limit} is used up.`, decision)
    case 'IMPOSSIBLE':
      return `This request asks for more at once than the ${limit} that the limit ${policy} can ever hold.`
    case 'MISSING_KEY':
      return `The rule "${ruleId}" needs to know who asks, and this request does not say.`
    case 'DENY_LISTED':
      return 'Requests of this caller are refused.'
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
