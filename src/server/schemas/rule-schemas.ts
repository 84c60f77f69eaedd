import Type, { type TSchema } from 'typebox'
import { algorithmNames, limitScopes, maxCapacity } from '../../core/rule.js'
import { cursorSchema, mistakeSchema } from './common-schemas.js'

/**
 * Rules as the OpenAPI document describes them. They are not checked by these: `rules/schema` knows every spelling, finds all
 * mistakes at once and names their places. A test holds the two together.
 */
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)
const texts = Type.Array(Type.String())
const textOrList = Type.Unsafe<unknown>({ anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] })
const duration = Type.Unsafe<unknown>({
  type: ['string', 'number'],
  description: '`1m`, `500ms`, or a number of seconds.',
})
const spelling = (names: readonly string[]) => Type.String({ examples: [...names] })

export const bandSchema = Type.Object(
  {
    label: optional(Type.String({ description: 'Unique in its rule; derived from capacity and window if left out.' })),
    capacity: Type.Integer({ minimum: 1, maximum: maxCapacity }),
    refillTokens: optional(Type.Integer({ minimum: 1, description: 'Default: the capacity.' })),
    refillSeconds: optional(Type.Number({ description: 'The window in seconds; or `window`, or `windowSeconds`.' })),
    window: optional(duration),
    windowSeconds: optional(Type.Number()),
    refill: optional(Type.Enum(['STEADY', 'INTERVAL'])),
    algorithm: optional(spelling(algorithmNames)),
  },
  { title: 'Band' },
)

const scalar = { type: ['string', 'number', 'boolean'] }

const ruleFields = {
  name: optional(Type.String()),
  description: optional(Type.String()),
  enabled: optional(Type.Boolean({ default: true })),
  priority: optional(Type.Integer({ default: 0, description: 'Higher first; ties by id.' })),
  path: optional(Type.String({ default: '/**', description: '`?`, `*`, `**` and `{name}`.' })),
  method: optional(textOrList),
  when: optional(
    Type.Unsafe<unknown>({
      type: 'object',
      additionalProperties: { anyOf: [scalar, { type: 'array', items: scalar }] },
      description: 'Further conditions, all of which must hold: `attributes.tier: premium`.',
    }),
  ),
  limitScope: optional(spelling(limitScopes)),
  scope: optional(Type.String({ description: 'Another name of `limitScope`.' })),
  compositeKeyFields: optional(texts),
  keyField: optional(Type.String()),
  keyResolver: optional(Type.String()),
  onMissingKey: optional(spelling(['ANONYMOUS', 'SKIP', 'DENY'])),
  algorithm: optional(spelling(algorithmNames)),
  bands: Type.Array(bandSchema, { minItems: 1, maxItems: 8 }),
  permits: optional(Type.Integer({ minimum: 1, default: 1 })),
  onLimitExceed: optional(spelling(['REJECT', 'WAIT_FOR_REFILL'])),
  onLimitExceedPolicy: optional(Type.String({ description: 'Another name of `onLimitExceed`.' })),
  maxWaitMs: optional(Type.Number({ minimum: 0 })),
  mode: optional(spelling(['ENFORCE', 'SHADOW'])),
  consistency: optional(spelling(['EXACT', 'LEASED'])),
  onStoreFailure: optional(spelling(['LOCAL', 'ALLOW', 'DENY'])),
  overrides: optional(Type.Boolean({ default: false })),
  attributes: optional(
    Type.Unsafe<unknown>({ type: 'object', additionalProperties: true, description: 'Free JSON, kept as it is.' }),
  ),
  createdAt: optional(Type.String({ description: 'Set by the store.' })),
  updatedAt: optional(Type.String({ description: 'Set by the store.' })),
  version: optional(Type.Integer({ description: 'Set by the store; the ETag.' })),
}

const id = Type.String({ pattern: '^[A-Za-z0-9._:-]{1,128}$' })

export const ruleSchema = Type.Object({ id, ...ruleFields }, { title: 'Rule' })

/** The id is in the URL and need not be repeated. */
export const ruleBodySchema = Type.Object({ id: optional(id), ...ruleFields }, { title: 'RuleToPut' })

export const rulePatchSchema = Type.Unsafe<unknown>({
  type: 'object',
  title: 'RulePatch',
  description: 'RFC 7396: the members of a rule that change; null removes one.',
  additionalProperties: true,
})

const setFields = {
  description: optional(Type.String()),
  strategy: optional(Type.Enum(['all', 'first'])),
  rules: Type.Array(ruleSchema),
}

export const ruleSetSchema = Type.Object(
  { id, ...setFields, version: Type.Integer({ description: 'Grows with every change; the ETag.' }) },
  { title: 'RuleSet' },
)

export const ruleSetBodySchema = Type.Object(
  { id: optional(id), ...setFields, version: optional(Type.Integer({ description: 'Ignored.' })) },
  { title: 'RuleSetToPut' },
)

export const ruleSetPageSchema = Type.Object(
  { ruleSets: Type.Array(ruleSetSchema), cursor: cursorSchema },
  { title: 'RuleSetPage' },
)

export const rulePageSchema = Type.Object(
  { rules: Type.Array(ruleSchema), cursor: cursorSchema },
  { title: 'RulePage' },
)

const anything = Type.Unsafe<unknown>({ description: 'The document, or null where there was, or is, none.' })

export const historySchema = Type.Object(
  {
    changes: Type.Array(
      Type.Object(
        {
          at: Type.String(),
          by: Type.String(),
          action: Type.Enum(['PUT_SET', 'DELETE_SET', 'PUT_RULE', 'DELETE_RULE']),
          ruleSetId: Type.String(),
          ruleId: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
          version: Type.Integer(),
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
  { valid: Type.Boolean(), errors: Type.Array(mistakeSchema) },
  { title: 'Validation' },
)

export const reloadSchema = Type.Object(
  { ruleSetId: optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 128 })) },
  { title: 'Reload' },
)

export const reloadedSchema = Type.Object(
  { ruleSets: Type.Array(Type.Object({ id: Type.String(), rules: Type.Integer() })) },
  { title: 'Reloaded', description: 'The rule sets that are in force, or the one that was asked for.' },
)
