import Type from 'typebox'
import { oneOf } from './common-schemas.js'

const sinceAt = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 0,
  description: 'Time of the last status change. Epoch milliseconds.',
})
const error = Type.Unsafe<string | null>({ type: ['string', 'null'] })

export const liveSchema = Type.Object({ status: oneOf(['UP']) }, { title: 'Live' })

export const readyQuerySchema = Type.Object({
  strict: Type.Optional(Type.Boolean({ description: 'Respond with 503 also if DEGRADED. Default: false.' })),
})

export const readySchema = Type.Object(
  {
    status: oneOf(
      ['UP', 'DEGRADED', 'DOWN', 'STOPPING'],
      'DEGRADED: the shared store is unavailable, the rules are older than those of the rule store, or buckets of removed rules still have to be reset. DOWN: the gate is closed. STOPPING: the server is draining.',
    ),
    store: Type.Object({ status: oneOf(['UP', 'DOWN']), sinceAt, error }),
    rules: Type.Object({ status: oneOf(['UP', 'STALE']), sinceAt, error }),
  },
  { title: 'Ready' },
)

export const infoSchema = Type.Object({}, { title: 'Info', additionalProperties: true })

export const openApiSchema = Type.Object({ openapi: Type.String() }, { title: 'OpenApi', additionalProperties: true })
