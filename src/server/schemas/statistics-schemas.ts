import Type from 'typebox'
import { count, oneOf } from './common-schemas.js'
import { reasons } from './decision-schema.js'

const textOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] })

const counts = {
  allowed: count(),
  delayed: count(),
  denied: count(),
  shadowDenied: count('Requests that a rule in SHADOW mode would have rejected.'),
}
const ruleFields = { ruleSetId: textOrNull, ruleId: textOrNull }
const at = Type.Number({ minimum: 0, description: 'Epoch milliseconds.' })
/** A count that is estimated if there are many requests. */
const estimate = Type.Number({ minimum: 0 })

export const summarySchema = Type.Object(
  {
    sinceAt: at,
    totals: Type.Object({ ...counts, degraded: count() }, { title: 'StatisticsTotals' }),
    rules: Type.Array(Type.Object({ ...ruleFields, ...counts }, { title: 'RuleStatistics' }), {
      description: 'Rules with the most decisions first.',
    }),
    seconds: Type.Array(Type.Object({ ...counts, at }, { title: 'SecondStatistics' }), {
      description: 'The most recent seconds, oldest first.',
    }),
  },
  { title: 'Statistics' },
)

export const keysSchema = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        ...ruleFields,
        key: Type.String({ description: 'A digest, unless `revealKeys` is set.' }),
        requests: estimate,
        denied: estimate,
        lastAt: at,
      }),
    ),
  },
  { title: 'Keys', description: 'Counts decay over time. High counts are estimates.' },
)

export const recentSchema = Type.Object(
  {
    decisions: Type.Array(
      Type.Object({
        allowed: Type.Boolean(),
        delayMs: Type.Number({ minimum: 0 }),
        reason: oneOf(reasons),
        ...ruleFields,
        band: textOrNull,
        key: textOrNull,
        limit: Type.Integer({ minimum: -1 }),
        remaining: Type.Integer({ minimum: -1 }),
        retryAfterMs: Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0 }),
        degraded: Type.Boolean(),
        at,
        method: textOrNull,
        path: textOrNull,
        weight: Type.Number({ minimum: 1, description: 'Number of decisions that this sample represents.' }),
      }),
      { description: 'Newest first.' },
    ),
  },
  { title: 'RecentDecisions' },
)
