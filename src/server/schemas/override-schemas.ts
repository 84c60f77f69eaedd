import Type from 'typebox'
import { cursorSchema } from './common-schemas.js'
import { bandSchema } from './rule-schemas.js'

const expiry = 'from then on the rule applies as it is.'
const balanceTime = 'when the override is written, if left out.'

const overrideFields = {
  action: Type.Enum(['LIMIT', 'ALLOW', 'DENY'], { description: 'Other bands, no limit, or nothing at all.' }),
  bands: Type.Optional(
    Type.Array(bandSchema, {
      minItems: 1,
      maxItems: 8,
      description: 'LIMIT: in place of the rule’s; with a balance may be left out.',
    }),
  ),
  expiresAt: Type.Optional(Type.String({ description: `ISO 8601; ${expiry}` })),
  note: Type.Optional(Type.String({ description: 'For people.' })),
  balance: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000_000,
      description: 'LIMIT: permits that were left in each band at `balanceAt`; it begins with these instead of full.',
    }),
  ),
  balanceAt: Type.Optional(Type.String({ description: `ISO 8601; ${balanceTime}` })),
}

const key = Type.String({
  minLength: 1,
  description: 'The identity as the rule counts it; for a rule of scope IP also a range such as `10.0.0.0/8`.',
})

export const overrideSchema = Type.Object({ key, ...overrideFields }, { title: 'Override' })

const moment = (description: string) =>
  Type.Optional(
    Type.Unsafe<string | number>({
      type: ['string', 'integer'],
      description: `ISO 8601, or epoch milliseconds; ${description}`,
    }),
  )

const givenFields = { ...overrideFields, expiresAt: moment(expiry), balanceAt: moment(balanceTime) }

export const newOverrideSchema = Type.Object({ key, ...givenFields }, { title: 'NewOverride' })

/** The key is in the URL and need not be repeated. */
export const overrideBodySchema = Type.Object({ key: Type.Optional(key), ...givenFields }, { title: 'OverrideToPut' })

export const overridePageSchema = Type.Object(
  { overrides: Type.Array(overrideSchema), cursor: cursorSchema },
  { title: 'OverridePage' },
)
