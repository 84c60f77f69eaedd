import Type from 'typebox'

export const mistakeSchema = Type.Object(
  { path: Type.String({ description: 'Where it is: `rules[2].bands[0].capacity`.' }), message: Type.String() },
  { title: 'Mistake' },
)

export const problemSchema = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: 'Stable, for programs.', pattern: '^FLUXGATE_[A-Z_]+$' }),
    errors: Type.Optional(Type.Array(mistakeSchema, { description: 'Every mistake, where the request has some.' })),
  },
  { title: 'Problem', description: 'RFC 9457.' },
)

/** Of lists. */
export const pageParameters = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 50, description: 'How many at most.' })),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_024, description: 'Of the page before, as it was given.' }),
  ),
}

export const defaultLimit = 50

/** What is behind the last page. */
export const cursorSchema = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Where the next page begins; null after the last one.',
})

export const identifier = (description: string) => Type.String({ minLength: 1, maxLength: 128, description })
