import Type from 'typebox'

const since = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  description: 'When the status last changed, in epoch milliseconds.',
})
const error = Type.Unsafe<string | null>({ type: ['string', 'null'] })

export const liveSchema = Type.Object({ status: Type.Literal('UP') }, { title: 'Live' })

export const readyQuerySchema = Type.Object({
  strict: Type.Optional(Type.Boolean({ description: 'Answer 503 if the status is DEGRADED, too.' })),
})

export const readySchema = Type.Object(
  {
    status: Type.Enum(['UP', 'DEGRADED', 'DOWN', 'STOPPING'], {
      description:
        'DEGRADED: decisions are made without the shared store, by older rules than the rule store holds, or before the buckets of removed rules are reset. DOWN: the gate is closed. STOPPING: the server is draining.',
    }),
    store: Type.Object({ status: Type.Enum(['UP', 'DOWN']), sinceAt: since, error }),
    rules: Type.Object({ status: Type.Enum(['UP', 'STALE']), sinceAt: since, error }),
  },
  { title: 'Ready' },
)

export const infoSchema = Type.Object({}, { title: 'Info', additionalProperties: true })

export const openApiSchema = Type.Object({ openapi: Type.String() }, { title: 'OpenApi', additionalProperties: true })
