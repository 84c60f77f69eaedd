import Type from 'typebox'
import { maxCapacity } from '../../core/rule.js'

/** Members may be null, because clients in some languages send null for missing values. */
const text = (maxLength: number, description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength, description }))

const headers = Type.Optional(
  Type.Unsafe<Record<string, string | string[] | null> | null>({
    type: ['object', 'null'],
    maxProperties: 100,
    additionalProperties: {
      anyOf: [
        { type: ['string', 'null'], maxLength: 8192 },
        { type: 'array', maxItems: 100, items: { type: 'string', maxLength: 8192 } },
      ],
    },
    description: 'Request headers, for rules that use `header.x`. Names are case-insensitive.',
  }),
)

const attributes = Type.Optional(
  Type.Unsafe<Record<string, unknown> | null>({
    type: ['object', 'null'],
    maxProperties: 1_000,
    additionalProperties: true,
    description: 'Attributes, for rules that use `attributes.x`.',
  }),
)

const requestFields = {
  ruleSetId: text(128, 'Default: the configured rule set, the only one, or the one named `default`, in this order.'),
  clientIp: text(256, 'Client IP address.'),
  userId: text(1_024, 'User ID.'),
  apiKey: text(1_024, 'API key.'),
  endpoint: text(8_192, 'Request path. A query string is ignored.'),
  path: text(8_192, 'Same as `endpoint`. Takes precedence if both are given.'),
  method: text(64, 'HTTP method, case-insensitive.'),
  headers,
  attributes,
  permits: Type.Optional(
    Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      maximum: maxCapacity,
      description: "Multiplies the rule's own `permits`. Default: 1.",
    }),
  ),
}

export const checkSchema = Type.Object(
  {
    ...requestFields,
    peek: Type.Optional(
      Type.Unsafe<boolean | null>({
        type: ['boolean', 'null'],
        description: 'Return the decision and charge nothing. Default: false.',
      }),
    ),
  },
  {
    title: 'Check',
    description: 'The request to decide. Unknown members are ignored.',
  },
)

export const maxBatch = 1_000

export const batchSchema = Type.Object(
  { checks: Type.Array(checkSchema, { maxItems: maxBatch }) },
  { title: 'CheckBatch', description: 'Checks, decided independently and in this order.' },
)

export const refundSchema = Type.Object(requestFields, {
  title: 'Refund',
  description: 'The check to refund. Permits are returned up to the capacity.',
})

export const refundedSchema = Type.Object(
  {
    permits: Type.Integer({
      minimum: 1,
      description: 'Permits returned to each rule, before multiplication by its own `permits`.',
    }),
  },
  { title: 'Refunded' },
)

export type CheckBody = Type.Static<typeof checkSchema>
export type RefundBody = Type.Static<typeof refundSchema>
