import Type from 'typebox'
import { maxCapacity } from '../../core/rule.js'

/** What some languages send for a member without a value is the same as leaving it out. */
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
    description: 'For rules that look at `header.x`. The case of names does not matter.',
  }),
)

const attributes = Type.Optional(
  Type.Unsafe<Record<string, unknown> | null>({
    type: ['object', 'null'],
    maxProperties: 1_000,
    additionalProperties: true,
    description: 'For rules that look at `attributes.x`.',
  }),
)

const who = {
  ruleSetId: text(
    128,
    'Left out: the configured default; else the only rule set there is; else the one called `default`.',
  ),
  clientIp: text(256, 'The address of whoever is to be limited.'),
  userId: text(1_024, 'Who is logged in.'),
  apiKey: text(1_024, 'The key that the request came with.'),
  endpoint: text(8_192, 'The path of the request. A query behind it is ignored.'),
  path: text(8_192, 'The same as `endpoint`; where both are given, `path` counts.'),
  method: text(64, 'The HTTP method of the request, in any case.'),
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

/** The name under which a schema stands in the OpenAPI document. */
export const checkSchema = Type.Object(
  {
    ...who,
    peek: Type.Optional(
      Type.Unsafe<boolean | null>({
        type: ['boolean', 'null'],
        description: 'Return the decision and charge nothing. Default: false.',
      }),
    ),
  },
  {
    title: 'Check',
    description: 'A request of yours that is to be decided about. Members that are not listed are ignored.',
  },
)

export const maxBatch = 1_000

export const batchSchema = Type.Object(
  { checks: Type.Array(checkSchema, { maxItems: maxBatch }) },
  { title: 'CheckBatch', description: 'Each is decided by itself, in this order.' },
)

export const refundSchema = Type.Object(who, {
  title: 'Refund',
  description: 'What was asked for in a check, to be given back: never more than the capacity.',
})

export const refundedSchema = Type.Object(
  {
    permits: Type.Integer({
      minimum: 1,
      description: 'How many permits were given back to each limit, times its own.',
    }),
  },
  { title: 'Refunded' },
)

export type CheckBody = Type.Static<typeof checkSchema>
export type RefundBody = Type.Static<typeof refundSchema>
