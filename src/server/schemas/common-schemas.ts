import { described, type Kind, type Kinds } from '../../validation/kind.js'
import { boundedText, instant, text, textMatching, wholeNumber } from '../../validation/kinds.js'
import { list, nullable, object } from '../../validation/structures.js'

const optionallyDescribed = <T>(kind: Kind<T>, description: string | undefined): Kind<T> =>
  description === undefined ? kind : described(kind, description)

/**
 * An object of a response, or of a request whose unknown members have no effect. It may have further members, so that clients and
 * servers of different versions understand each other. `title` is its name in the OpenAPI document.
 */
export const openObject = <R extends Kinds, O extends Kinds = Record<never, never>>(
  title: string,
  required: R,
  optional: O = {} as O,
  description?: string,
) => object(required, optional, { title, ...(description !== undefined && { description }), isOpen: true })

export const dateTime = (description?: string): Kind<string> => optionallyDescribed(instant, description)

export const epochMs = (description: string): Kind<number> =>
  described(wholeNumber(0), `${description} Epoch milliseconds.`)

/** A number of at least `min`. Fractions are allowed. */
export const number = (min: number, description?: string): Kind<number> => ({
  allowed: `a number from ${min}`,
  schema: { type: 'number', minimum: min, ...(description && { description }) },
  parse: (value) => (typeof value === 'number' && value >= min ? value : undefined),
})

/** The length of a window. */
export const windowMs: Kind<number> = number(0, 'The window in milliseconds; 0 for CONCURRENCY, which has none.')

/** A non-negative integer: decisions, requests or permits. */
export const count = (description?: string): Kind<number> => optionallyDescribed(wholeNumber(0), description)

export const textOrNull = (description?: string): Kind<string | null> =>
  optionallyDescribed(nullable(text), description)

/** A list of any length, for responses. */
export const listOf = <T>(item: Kind<T>, description?: string): Kind<readonly T[]> =>
  optionallyDescribed(list(item, { min: 0 }), description)

export const validationIssueSchema = openObject('ValidationIssue', {
  path: described(text, 'Location of the error, such as `rules[2].bands[0].capacity`.'),
  message: text,
})

export const problemSchema = openObject(
  'Problem',
  {
    type: {
      ...text,
      schema: {
        type: 'string',
        format: 'uri-reference',
        description: 'Always `about:blank`. Use `code` to identify errors.',
      },
    },
    title: described(text, 'Reason phrase of the status.'),
    status: wholeNumber(400, 599),
    detail: text,
    code: described(textMatching('an error code', /^FLUXGATE_[A-Z_]+$/), 'Stable error code.'),
  },
  { errors: listOf(validationIssueSchema, 'All validation errors of the request.') },
  'Problem document (RFC 9457).',
)

export const defaultLimit = 50

/** Query parameters of paginated lists. */
export const pageParameters = {
  limit: described(wholeNumber(1, 1_000), `Page size. Default: ${defaultLimit}.`),
  cursor: described(boundedText(1, 2_048), '`cursor` of the previous page.'),
}

/** Query parameters of paginated lists of keys. */
export const keyParameters = {
  prefix: described(boundedText(0, 1_024), 'List only keys with this prefix.'),
  ...pageParameters,
}

export const cursorSchema = textOrNull('Cursor of the next page; null on the last page.')
