import Type from 'typebox'
import { maxCapacity } from '../../core/rule.js'
import { leastMs, longestKey, longestNote } from '../../rules/schema/override-schema.js'
import { cursorSchema, dateTime, oneOf } from './common-schemas.js'
import { bandSchema } from './rule-schemas.js'

const expiry = 'Expiry time. After it, the rule applies unchanged.'
const balanceTime = 'The time of `balance`, not in the future. Default: the time of the request.'

const overrideFields = {
  action: oneOf(['LIMIT', 'ALLOW', 'DENY'], 'LIMIT: use other bands. ALLOW: no limit. DENY: reject every request.'),
  bands: Type.Optional(
    Type.Array(bandSchema, {
      minItems: 1,
      maxItems: 8,
      description: "LIMIT: replaces the rule's bands. Optional if `balance` is given.",
    }),
  ),
  note: Type.Optional(Type.String({ maxLength: longestNote, description: 'Free text.' })),
  balance: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxCapacity,
      description: 'LIMIT: starting balance. Permits left in each band at `balanceAt`, instead of a full bucket.',
    }),
  ),
}

const key = Type.String({
  minLength: 1,
  maxLength: longestKey,
  description: 'The key that is limited. For rules of scope IP, also a range such as `10.0.0.0/8`.',
})

const closed = { additionalProperties: false }

export const overrideSchema = Type.Object(
  {
    key,
    ...overrideFields,
    expiresAt: Type.Optional(dateTime(expiry)),
    balanceAt: Type.Optional(dateTime(balanceTime)),
  },
  { title: 'Override', ...closed },
)

const moment = (description: string) =>
  Type.Optional(
    Type.Unsafe<string | number>({
      anyOf: [
        { type: 'string', format: 'date-time' },
        { type: 'integer', minimum: leastMs, maximum: 8_640_000_000_000_000 },
      ],
      description: `${description} RFC 3339, or epoch milliseconds.`,
    }),
  )

const givenFields = { ...overrideFields, expiresAt: moment(expiry), balanceAt: moment(balanceTime) }

export const newOverrideSchema = Type.Object({ key, ...givenFields }, { title: 'NewOverride', ...closed })

/** `key` is optional, because the URL contains it. */
export const overrideBodySchema = Type.Object(
  { key: Type.Optional(key), ...givenFields },
  { title: 'OverrideToPut', ...closed },
)

export const overridePageSchema = Type.Object(
  { overrides: Type.Array(overrideSchema), cursor: cursorSchema },
  { title: 'OverridePage' },
)
