import { described } from '../../validation/kind.js'
import { boolean, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable } from '../../validation/structures.js'
import { requestFields } from './check-schema.js'
import { count, epochMs, listOf, openObject, textOrNull, windowMs } from './common-schemas.js'
import { decisionSchema } from './decision-schema.js'

export const explainSchema = openObject(
  'Explain',
  {},
  {
    ...requestFields,
    limit: described(
      nullable(wholeNumber(0, 100_000)),
      'Maximum number of rules that do not apply. Rules that apply are always listed. Default: 1000.',
    ),
  },
  'The request to explain. Unknown members are ignored.',
)

const received = {
  allowed: 'a string, a list of strings, or null',
  schema: {
    anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }],
    description: 'The value of the request; null if it has none.',
  },
  parse: (value: unknown) => value as string | readonly string[] | null,
}

const failedSchema = openObject('FailedCondition', {
  field: described(text, 'Such as `path`, `method`, `attributes.tier`, `USER_ID` or `strategy`.'),
  expected: listOf(text, 'The values that the rule accepts. Empty if any value is accepted.'),
  received,
})

const bandSchema = openObject('ExplainedBand', {
  label: text,
  limit: count(),
  remaining: count('Permits left before the decision.'),
  resetAt: epochMs('The time at which the bucket is full or its window ends.'),
  windowMs,
  allowed: described(nullable(boolean), 'Whether the band allows the request; null if no bucket was needed to decide.'),
  retryAfterMs: described(nullable(wholeNumber(0)), 'Time until the band allows the request; null if never.'),
})

const bucketSchema = openObject('ExplainedBucket', {
  key: described(text, 'A digest, unless `revealKeys` is set.'),
  shadow: boolean,
  override: textOrNull('Action of the override of the key: LIMIT (other bands), ALLOW or DENY. Null without one.'),
  bands: listOf(bandSchema, 'Empty if an override allows or denies the key.'),
})

const ruleSchema = openObject('ExplainedRule', {
  ruleId: text,
  name: textOrNull(),
  priority: { ...wholeNumber(-1e9, 1e9), schema: { type: 'integer', minimum: -1e9, maximum: 1e9 } },
  mode: oneOf(['ENFORCE', 'SHADOW'] as const),
  status: oneOf(['MATCHED', 'NOT_MATCHED', 'DISABLED', 'NO_KEY', 'MISSING_KEY', 'PRECEDED'] as const),
  failed: described(nullable(failedSchema), 'The first condition that failed; null if the rule matches.'),
  buckets: listOf(bucketSchema, 'The buckets of a matching rule.'),
})

export const explanationSchema = openObject('Explanation', {
  ruleSetId: textOrNull(),
  paths: listOf(text, 'The normalised path; several if servers interpret the path differently.'),
  rules: listOf(ruleSchema, 'By descending priority, ties by ID.'),
  omitted: count('Rules that are left out because of `limit`.'),
  decision: decisionSchema,
})
