import Type from 'typebox'

const nullable = (type: string, description?: string) =>
  Type.Unsafe<unknown>({ type: [type, 'null'], ...(description && { description }) })

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

const bandDecisionSchema = Type.Object(
  {
    ruleId: Type.String(),
    label: Type.String(),
    key: Type.String(),
    limit: Type.Integer(),
    remaining: Type.Integer(),
    resetAt: Type.Integer({ description: 'Epoch milliseconds.' }),
    retryAfterMs: nullable('integer'),
    allowed: Type.Boolean(),
    shadow: Type.Boolean({ description: 'Counted and reported, never refuses.' }),
    windowMs: Type.Number(),
  },
  { title: 'BandDecision' },
)

export const decisionSchema = Type.Object(
  {
    allowed: Type.Boolean(),
    delayMs: Type.Number({ description: 'Allowed, but only after this long.' }),
    reason: Type.Enum(reasons),
    ruleSetId: nullable('string'),
    ruleId: nullable('string', 'Who decided: the refusing band that must wait longest; if allowed, the tightest one.'),
    band: nullable('string'),
    key: nullable('string'),
    limit: Type.Integer(),
    remaining: Type.Integer({ description: '-1 when nothing limits.' }),
    retryAfterMs: nullable('integer', '0 if allowed; null if this request can never succeed.'),
    resetAt: Type.Integer({ description: 'Epoch milliseconds at which the bucket is full, or its window ends.' }),
    policy: Type.Enum(['REJECT', 'WAIT_FOR_REFILL']),
    degraded: Type.Boolean({ description: 'Answered without the shared store.' }),
    bands: Type.Array(bandDecisionSchema),
  },
  { title: 'Decision' },
)

export const decisionsSchema = Type.Object(
  { decisions: Type.Array(decisionSchema, { description: 'In the order of the checks.' }) },
  { title: 'Decisions' },
)
