import Type from 'typebox'

const since = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  description: 'Epoch milliseconds from which on it is so.',
})
const error = Type.Unsafe<string | null>({ type: ['string', 'null'] })

export const liveSchema = Type.Object({ status: Type.Literal('UP') }, { title: 'Live' })

export const readySchema = Type.Object(
  {
    status: Type.Enum(['UP', 'DEGRADED', 'DOWN', 'STOPPING'], {
      description:
        'DEGRADED: decisions are made on older rules than were offered, or buckets of removed rules could not be reset yet. DOWN: without the shared store.',
    }),
    store: Type.Object({ status: Type.Enum(['UP', 'DOWN']), sinceAt: since, error }),
    rules: Type.Object({ status: Type.Enum(['UP', 'STALE']), sinceAt: since, error }),
  },
  { title: 'Ready' },
)

export const infoSchema = Type.Object({}, { title: 'Info', additionalProperties: true })

export const openApiSchema = Type.Object({ openapi: Type.String() }, { title: 'OpenApi', additionalProperties: true })
