import Type from 'typebox'

/** A string enumeration. OpenAPI generators understand `enum`, but not `anyOf` with `const`. */
export const oneOf = <const T extends readonly string[]>(values: T, description?: string) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...(description && { description }) })

/** RFC 3339, as `Date.prototype.toISOString` writes it. */
export const dateTime = (description?: string) =>
  Type.String({ format: 'date-time', ...(description && { description }) })

export const epochMs = (description: string) =>
  Type.Integer({ minimum: 0, description: `${description} Epoch milliseconds.` })

/** A non-negative integer: decisions, requests or permits. */
export const count = (description?: string) => Type.Integer({ minimum: 0, ...(description && { description }) })

/** Pattern of rule set IDs, rule IDs and band labels. */
export const idPattern = '^[A-Za-z0-9._:-]{1,128}$'

export const validationIssueSchema = Type.Object(
  {
    path: Type.String({ description: 'Location of the error, such as `rules[2].bands[0].capacity`.' }),
    message: Type.String(),
  },
  { title: 'ValidationIssue' },
)

export const problemSchema = Type.Object(
  {
    type: Type.String({ format: 'uri-reference', description: 'Always `about:blank`. Use `code` to identify errors.' }),
    title: Type.String({ description: 'Reason phrase of the status.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String(),
    code: Type.String({ description: 'Stable error code.', pattern: '^FLUXGATE_[A-Z_]+$' }),
    errors: Type.Optional(Type.Array(validationIssueSchema, { description: 'All validation errors of the request.' })),
  },
  { title: 'Problem', description: 'Problem document (RFC 9457).' },
)

export const defaultLimit = 50

/** Query parameters of paginated lists. */
export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, description: `Page size. Default: ${defaultLimit}.` }),
  ),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 1_024, description: '`cursor` of the previous page.' })),
}

export const cursorSchema = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: 'Cursor of the next page; null on the last page.',
})

export const identifier = (description: string) => Type.String({ pattern: idPattern, description })
