import { FluxGateError } from '../../core/errors.js'
import type { Page, PageQuery } from '../../core/rule-store.js'

/** More than this at once helps nobody, and holds up everybody else. */
const maxPageSize = 1_000

/** Reads what a query says about its page; `position` is where the page before it ended. */
export function openPage<T>(query: PageQuery, isPosition: (value: unknown) => value is T) {
  const { limit, cursor } = (query as PageQuery | undefined) ?? { limit: Number.NaN }
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw invalid(
      `limit: found ${Number.isNaN(limit) ? 'nothing' : String(limit)}; allowed: a whole number from 1 to ${maxPageSize}.`,
    )
  return { limit, position: cursor === undefined ? undefined : decoded(cursor, isPosition) }
}

/** A page out of one item more than it holds, which tells whether there is another. */
export function closePage<T>(found: readonly T[], limit: number, positionOf: (item: T) => unknown): Page<T> {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  const isLast = found.length <= limit || last === undefined
  return { items, cursor: isLast ? null : Buffer.from(JSON.stringify(positionOf(last))).toString('base64url') }
}

function decoded<T>(cursor: string, isPosition: (value: unknown) => value is T): T {
  try {
    const position: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (isPosition(position)) return position
  } catch {
    // Said below, as for any other text that was never a cursor.
  }
  throw invalid('cursor: found something that no page ended with; allowed: the cursor of the page before, as it was.')
}

export const isText = (value: unknown): value is string => typeof value === 'string'

export const isNumber = (value: unknown): value is number => typeof value === 'number'

/** A rule's priority and id. */
export const isRank = (value: unknown): value is readonly [number, string] =>
  Array.isArray(value) && value.length === 2 && isNumber(value[0]) && isText(value[1])

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
