import Type, { type TSchema } from 'typebox'
import { algorithmNames, limitScopes, maxCapacity, maxWindowTicks, minWindowTicks } from '../../core/rule.js'
import { maxKeyFields } from '../../rules/schema/key-schema.js'
import { maxMethods } from '../../rules/schema/method-schema.js'
import { maxPathLength } from '../../rules/schema/path-schema.js'
import { maxBands, maxWaitMs } from '../../rules/schema/rule-schema.js'
import { durationPattern } from '../../validation/duration.js'
import { count, cursorSchema, dateTime, idPattern, oneOf, validationIssueSchema } from './common-schemas.js'

/**
 * Schemas of rules, for the OpenAPI document only. `rules/schema` validates rules: it accepts every spelling and reports all
 * issues with their paths. A test keeps the two consistent.
 */
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const closed = { additionalProperties: false }
const perSecond = 1_000_000
const seconds = (description: string) =>
  Type.Number({ minimum: minWindowTicks / perSecond, maximum: maxWindowTicks / perSecond, description })
/** Responses use these names. On input, letter case, `-` and `_` do not matter. */
const algorithm = oneOf(algorithmNames)
const scope = (description: string) => oneOf([...limitScopes, 'PER_IP', 'PER_USER', 'PER_API_KEY'], description)
const policy = (description: string) => oneOf(['REJECT', 'WAIT_FOR_REFILL', 'REJECT_REQUEST'], description)

export const bandSchema = Type.Object(
  {
    label: optional(
      Type.String({
        pattern: idPattern,
        description: 'Unique within the rule. Default: derived from capacity and window.',
      }),
    ),
    capacity: Type.Integer({ minimum: 1, maximum: maxCapacity }),
    refillTokens: optional(Type.Integer({ minimum: 1, maximum: maxCapacity, description: 'Default: the capacity.' })),
    refillSeconds: optional(
      seconds('Window in seconds. Exactly one of `refillSeconds`, `window` and `windowSeconds` is required.'),
    ),
    window: optional(
      Type.Unsafe<string | number>({
        anyOf: [
          { type: 'string', pattern: durationPattern, maxLength: 40 },
          { type: 'number', minimum: minWindowTicks / perSecond, maximum: maxWindowTicks / perSecond },
        ],
        description: 'Window as a duration such as `1m` or `500ms`, or as a number of seconds.',
      }),
    ),
    windowSeconds: optional(seconds('Alias of `refillSeconds`.')),
    refill: optional(oneOf(['STEADY', 'INTERVAL'], 'TOKEN_BUCKET only. Default: STEADY.')),
    algorithm: optional(algorithm),
  },
  { title: 'Band', ...closed },
)

const keyField = {
  type: 'string',
  maxLength: 139,
  pattern: '^(IP|USER_ID|API_KEY|METHOD|PATH|attributes\\..+|header\\..+|path\\..+)$',
}
const method = { type: 'string', pattern: '^(\\*|[A-Za-z][A-Za-z0-9_-]{0,31})$' }
const conditionValue = { type: ['string', 'number', 'boolean'], maxLength: 1_024 }

const ruleFields = {
  name: optional(Type.String()),
  description: optional(Type.String()),
  enabled: optional(Type.Boolean({ description: 'Default: true.' })),
  priority: optional(
    Type.Integer({
      minimum: -maxCapacity,
      maximum: maxCapacity,
      description: 'Higher values first; ties by ID. Default: 0.',
    }),
  ),
  path: optional(
    Type.String({
      pattern: '^/',
      maxLength: maxPathLength,
      description: 'Path pattern with `?`, `*`, `**` and `{name}`. Default: `/**`.',
    }),
  ),
  method: optional(
    Type.Unsafe<string | string[]>({
      anyOf: [method, { type: 'array', minItems: 1, maxItems: maxMethods, items: method }],
      description: '`GET`, `[GET, HEAD]` or `*`. Default: any.',
    }),
  ),
  when: optional(
    Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: {
        anyOf: [conditionValue, { type: 'array', minItems: 1, maxItems: 1_000, items: conditionValue }],
      },
      description: 'Conditions that must all hold, such as `attributes.tier: premium`.',
    }),
  ),
  limitScope: optional(scope('The identity to limit. Default: IP.')),
  scope: optional(scope('Alias of `limitScope`.')),
  compositeKeyFields: optional(
    Type.Unsafe<string[]>({
      type: 'array',
      maxItems: maxKeyFields,
      uniqueItems: true,
      items: keyField,
      description: 'COMPOSITE only.',
    }),
  ),
  keyField: optional(
    Type.Unsafe<string>({ ...keyField, description: 'CUSTOM only: the field to use as key. Excludes `keyResolver`.' }),
  ),
  keyResolver: optional(
    Type.String({ pattern: idPattern, description: 'CUSTOM only: the name of a resolver registered in code.' }),
  ),
  onMissingKey: optional(oneOf(['ANONYMOUS', 'SKIP', 'DENY'], 'Default: ANONYMOUS.')),
  algorithm: optional(algorithm),
  bands: Type.Array(bandSchema, { minItems: 1, maxItems: maxBands }),
  permits: optional(Type.Integer({ minimum: 1, maximum: maxCapacity, description: 'Default: 1.' })),
  onLimitExceed: optional(policy('Default: REJECT.')),
  onLimitExceedPolicy: optional(policy('Alias of `onLimitExceed`.')),
  maxWaitMs: optional(Type.Integer({ minimum: 0, maximum: maxWaitMs })),
  mode: optional(oneOf(['ENFORCE', 'SHADOW'], 'Default: ENFORCE.')),
  consistency: optional(oneOf(['EXACT', 'LEASED'], 'Default: EXACT. LEASED: TOKEN_BUCKET and FIXED_WINDOW only.')),
  onStoreFailure: optional(oneOf(['LOCAL', 'ALLOW', 'DENY'])),
  overrides: optional(Type.Boolean({ description: 'Enable overrides for this rule. Default: false.' })),
  attributes: optional(
    Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'Free-form JSON, preserved byte for byte.',
    }),
  ),
  createdAt: optional(dateTime('Set by the store; ignored in requests.')),
  updatedAt: optional(dateTime('Set by the store; ignored in requests.')),
  version: optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Set by the store; ignored in requests. The ETag.',
    }),
  ),
}

const id = Type.String({ pattern: idPattern })

export const ruleSchema = Type.Object({ id, ...ruleFields }, { title: 'Rule', ...closed })

/** `id` is optional, because the URL contains it. */
export const ruleBodySchema = Type.Object({ id: optional(id), ...ruleFields }, { title: 'RuleToPut', ...closed })

export const rulePatchSchema = Type.Unsafe<unknown>({
  type: 'object',
  title: 'RulePatch',
  description: 'JSON merge patch (RFC 7396): the members to change. null removes a member.',
  additionalProperties: true,
})

const setFields = {
  description: optional(Type.String()),
  strategy: optional(oneOf(['all', 'first'], 'Default: all.')),
  caseSensitive: optional(Type.Boolean({ description: 'Match paths case-sensitively. Default: false.' })),
  rules: Type.Array(ruleSchema),
}

export const ruleSetSchema = Type.Object(
  { id, ...setFields, version: Type.Integer({ minimum: 1, description: 'Increases with every change. The ETag.' }) },
  { title: 'RuleSet' },
)

export const ruleSetBodySchema = Type.Object(
  {
    id: optional(id),
    ...setFields,
    version: optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Ignored.' })),
  },
  { title: 'RuleSetToPut', ...closed },
)

export const ruleSetPageSchema = Type.Object(
  { ruleSets: Type.Array(ruleSetSchema), cursor: cursorSchema },
  { title: 'RuleSetPage' },
)

export const rulePageSchema = Type.Object(
  { rules: Type.Array(ruleSchema), cursor: cursorSchema },
  { title: 'RulePage' },
)

const anything = Type.Unsafe<unknown>({ description: 'The document; null if it did not exist.' })

export const historySchema = Type.Object(
  {
    changes: Type.Array(
      Type.Object(
        {
          at: dateTime(),
          by: Type.String(),
          action: oneOf(['PUT_SET', 'DELETE_SET', 'PUT_RULE', 'DELETE_RULE']),
          ruleSetId: Type.String(),
          ruleId: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
          version: count(),
          before: anything,
          after: anything,
        },
        { title: 'Change' },
      ),
      { description: 'Newest first.' },
    ),
    cursor: cursorSchema,
  },
  { title: 'History' },
)

export const anyDocumentSchema = Type.Unsafe<unknown>({
  title: 'RuleDocuments',
  description: '`{ ruleSets: [...] }`, a list of rule sets, one rule set, or one rule.',
})

export const validationSchema = Type.Object(
  { valid: Type.Boolean(), errors: Type.Array(validationIssueSchema) },
  { title: 'Validation' },
)

export const reloadSchema = Type.Object(
  { ruleSetId: optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 128 })) },
  { title: 'Reload' },
)

export const reloadedSchema = Type.Object(
  { ruleSets: Type.Array(Type.Object({ id: Type.String(), rules: count() }, { title: 'ReloadedRuleSet' })) },
  { title: 'Reloaded', description: 'The rule sets in force, or only the requested one.' },
)
