import Type from 'typebox'
import { count, oneOf } from './common-schemas.js'
import { reasons } from './decision-schema.js'

const textOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] })

const counts = {
  allowed: count(),
  delayed: count(),
  denied: count(),
  shadowDenied: count('How often a rule in SHADOW would have rejected.'),
}
const who = { ruleSetId: textOrNull, ruleId: textOrNull }
const at = Type.Number({ minimum: 0, description: 'Epoch milliseconds.' })
/** Estimated where there are many. */
const estimate = Type.Number({ minimum: 0 })

export const summarySchema = Type.Object(
  {
    sinceAt: at,
    totals: Type.Object({ ...counts, degraded: count() }, { title: 'StatisticsTotals' }),
    rules: Type.Array(Type.Object({ ...who, ...counts }, { title: 'RuleStatistics' }), {
      description: 'Most decisions first.',
    }),
    seconds: Type.Array(Type.Object({ ...counts, at }, { title: 'SecondStatistics' }), {
      description: 'The latest, oldest first.',
    }),
  },
  { title: 'Statistics' },
)

export const keysSchema = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        ...who,
        key: Type.String({ description: 'A digest, unless keys may be shown.' }),
        requests: estimate,
        denied: estimate,
        lastAt: at,
      }),
    ),
  },
  { title: 'Keys', description: 'Old requests count less and less, and many requests are estimated.' },
)

export const recentSchema = Type.Object(
  {
    decisions: Type.Array(
      Type.Object({
        allowed: Type.Boolean(),
        delayMs: Type.Number({ minimum: 0 }),
        reason: oneOf(reasons),
        ...who,
        band: textOrNull,
        key: textOrNull,
        limit: Type.Integer({ minimum: -1 }),
        remaining: Type.Integer({ minimum: -1 }),
        retryAfterMs: Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0 }),
        degraded: Type.Boolean(),
        at,
        method: textOrNull,
        path: textOrNull,
        weight: Type.Number({ minimum: 1, description: 'How many decisions this one stands for.' }),
      }),
      { description: 'Newest first.' },
    ),
  },
  { title: 'RecentDecisions' },
)
