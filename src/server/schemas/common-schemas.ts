import Type from 'typebox'

/** A string that is one of these. OpenAPI generators make an enumeration of `enum`, but not of `anyOf` with `const`. */
export const oneOf = <const T extends readonly string[]>(values: T, description?: string) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...(description && { description }) })

/** RFC 3339, as `Date.prototype.toISOString` writes it. */
export const dateTime = (description?: string) =>
  Type.String({ format: 'date-time', ...(description && { description }) })

export const epochMs = (description: string) =>
  Type.Integer({ minimum: 0, description: `${description} Epoch milliseconds.` })

/** A number of decisions, requests or permits. */
export const count = (description?: string) => Type.Integer({ minimum: 0, ...(description && { description }) })

/** Ids of rule sets and rules, and labels of bands. */
export const idPattern = '^[A-Za-z0-9._:-]{1,128}$'

export const mistakeSchema = Type.Object(
  {
    path: Type.String({ description: 'The place of the mistake: `rules[2].bands[0].capacity`.' }),
    message: Type.String(),
  },
  { title: 'Mistake' },
)

export const problemSchema = Type.Object(
  {
    type: Type.String({ format: 'uri-reference', description: 'Always `about:blank`; `code` tells problems apart.' }),
    title: Type.String({ description: 'The reason phrase of the status.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String(),
    code: Type.String({ description: 'Stable, for programs.', pattern: '^FLUXGATE_[A-Z_]+$' }),
    errors: Type.Optional(Type.Array(mistakeSchema, { description: 'Every mistake in the request, if it has any.' })),
  },
  { title: 'Problem', description: 'RFC 9457.' },
)

export const defaultLimit = 50

/** Parameters of lists. */
export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: `The size of the page. Default: ${defaultLimit}.` }),
  ),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 1_024, description: '`cursor` of the previous page.' })),
}

export const cursorSchema = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'For the next page; null after the last one.',
})

export const identifier = (description: string) => Type.String({ pattern: idPattern, description })
