import Type from 'typebox'
import { count, epochMs, oneOf } from './common-schemas.js'

const textOrNull = (description?: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], ...(description && { description }) })

const retryAfterMs = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 0,
  description: 'Time after which a retry is allowed. 0 if allowed; null if the request can never succeed.',
})

export const reasons = [
  'ALLOWED',
  'LIMITED',
  'IMPOSSIBLE',
  'MISSING_KEY',
  'NO_RULE',
  'NO_RULE_SET',
  'STORE_FAILURE',
  'ALLOW_LISTED',
  'DENY_LISTED',
] as const

const resetAt = epochMs('The time at which the bucket is full or its window ends.')

const bandDecisionSchema = Type.Object(
  {
    ruleId: Type.String(),
    label: Type.String(),
    key: Type.String(),
    limit: count(),
    remaining: count(),
    resetAt,
    retryAfterMs,
    allowed: Type.Boolean(),
    shadow: Type.Boolean({ description: 'The rule is in SHADOW mode: it counts and reports, but never rejects.' }),
    windowMs: Type.Number({ exclusiveMinimum: 0 }),
  },
  { title: 'BandDecision' },
)

export const decisionSchema = Type.Object(
  {
    allowed: Type.Boolean(),
    delayMs: Type.Number({
      minimum: 0,
      description: 'Wait this long before proceeding. 0 unless allowed with a delay.',
    }),
    reason: oneOf(reasons),
    ruleSetId: textOrNull(),
    ruleId: textOrNull(
      'The rule of the deciding band: the rejecting band with the longest wait or, if allowed, the most restrictive band.',
    ),
    band: textOrNull(),
    key: textOrNull(),
    limit: Type.Integer({ minimum: -1, description: 'Capacity of the deciding band; -1 if no limit applies.' }),
    remaining: Type.Integer({ minimum: -1, description: 'Permits left in the deciding band; -1 if no limit applies.' }),
    retryAfterMs,
    resetAt,
    policy: oneOf(['REJECT', 'WAIT_FOR_REFILL']),
    degraded: Type.Boolean({ description: 'Decided without the shared store.' }),
    bands: Type.Array(bandDecisionSchema),
  },
  { title: 'Decision' },
)

export const decisionsSchema = Type.Object(
  { decisions: Type.Array(decisionSchema, { description: 'In the order of the checks.' }) },
  { title: 'Decisions' },
)
