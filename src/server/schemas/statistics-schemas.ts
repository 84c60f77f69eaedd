import Type from 'typebox'
import { reasons } from './decision-schema.js'

const nullable = (type: string) => Type.Unsafe<unknown>({ type: [type, 'null'] })

const counts = {
  allowed: Type.Number(),
  delayed: Type.Number(),
  denied: Type.Number(),
  shadowDenied: Type.Number({ description: 'How often a rule in SHADOW would have refused.' }),
}
const who = { ruleSetId: nullable('string'), ruleId: nullable('string') }
const at = Type.Number({ description: 'Epoch milliseconds.' })

export const summarySchema = Type.Object(
  {
    sinceAt: at,
    totals: Type.Object({ ...counts, degraded: Type.Number() }),
    rules: Type.Array(Type.Object({ ...who, ...counts }), { description: 'Most decisions first.' }),
    seconds: Type.Array(Type.Object({ ...counts, at }), { description: 'The latest, oldest first.' }),
  },
  { title: 'Statistics' },
)

export const keysSchema = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        ...who,
        key: Type.String({ description: 'A digest, unless keys may be shown.' }),
        requests: Type.Number(),
        denied: Type.Number(),
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
        delayMs: Type.Number(),
        reason: Type.Enum(reasons),
        ...who,
        band: nullable('string'),
        key: nullable('string'),
        limit: Type.Number(),
        remaining: Type.Number(),
        retryAfterMs: nullable('number'),
        degraded: Type.Boolean(),
        at,
        method: nullable('string'),
        path: nullable('string'),
        weight: Type.Number({ description: 'How many decisions this one stands for.' }),
      }),
      { description: 'Newest first.' },
    ),
  },
  { title: 'RecentDecisions' },
)
