import { described } from '../../validation/kind.js'
import { boolean, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable } from '../../validation/structures.js'
import { count, epochMs, listOf, number, openObject, textOrNull, windowMs } from './common-schemas.js'

const retryAfterMs = described(
  nullable(wholeNumber(0)),
  'Time after which a retry is allowed. 0 if allowed; null if the request can never succeed.',
)

export const reasons = [
  'ALLOWED',
  'LIMITED',
  'BANNED',
  'IMPOSSIBLE',
  'MISSING_KEY',
  'NO_RULE',
  'NO_RULE_SET',
  'STORE_FAILURE',
  'ALLOW_LISTED',
  'DENY_LISTED',
] as const

const resetAt = epochMs('The time at which the bucket is full or its window ends.')

const bandDecisionSchema = openObject('BandDecision', {
  ruleId: text,
  label: text,
  key: text,
  limit: count(),
  remaining: count(),
  resetAt,
  retryAfterMs,
  allowed: boolean,
  shadow: described(boolean, 'The rule is in SHADOW mode: it counts and reports, but never rejects.'),
  windowMs,
})

export const decisionSchema = openObject(
  'Decision',
  {
    allowed: boolean,
    delayMs: number(0, 'Wait this long before proceeding. 0 unless allowed with a delay.'),
    reason: oneOf(reasons),
    ruleSetId: textOrNull(),
    ruleId: textOrNull(
      'The rule of the deciding band: the rejecting band with the longest wait or, if allowed, the most restrictive band.',
    ),
    band: textOrNull(),
    key: textOrNull(),
    limit: described(wholeNumber(-1), 'Capacity of the deciding band; -1 if no limit applies.'),
    remaining: described(wholeNumber(-1), 'Permits left in the deciding band; -1 if no limit applies.'),
    retryAfterMs,
    resetAt,
    decidedAt: number(0, 'When the store decided, by its clock. Epoch milliseconds, with a fraction.'),
    policy: oneOf(['REJECT', 'WAIT_FOR_REFILL'] as const),
    degraded: described(boolean, 'Decided without the shared store.'),
    bands: listOf(bandDecisionSchema),
  },
  {
    degradedCause: described(
      text,
      'Present if degraded is true: the code of the failure, such as FLUXGATE_STORE_TIMEOUT.',
    ),
    holdId: described(
      text,
      'Present if the request occupies slots of CONCURRENCY rules. Release it with POST /api/ratelimit/release.',
    ),
  },
)

export const decisionsSchema = openObject('Decisions', {
  decisions: listOf(decisionSchema, 'In the order of the checks.'),
})
