import type { Page, PageQuery } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'

/** Bounds the work of one request, so that it does not delay others. */
const maxPageSize = 1_000

/** Validates the page query. `position` is the decoded cursor: the position after which the page starts. */
export function parsePageQuery<T>(query: PageQuery, isPosition: (value: unknown) => value is T) {
  const { limit, cursor } = (query as PageQuery | undefined) ?? { limit: Number.NaN }
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw invalid(
      `limit must be an integer from 1 to ${maxPageSize}; received ${Number.isNaN(limit) ? 'nothing' : String(limit)}.`,
    )
  return { limit, position: cursor === undefined ? undefined : decodeCursor(cursor, isPosition) }
}

/** Builds a page from up to `limit + 1` items. The extra item means that there is another page. */
export function buildPage<T>(found: readonly T[], limit: number, positionOf: (item: T) => unknown): Page<T> {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  const isLast = found.length <= limit || last === undefined
  return { items, cursor: isLast ? null : Buffer.from(JSON.stringify(positionOf(last))).toString('base64url') }
}

function decodeCursor<T>(cursor: string, isPosition: (value: unknown) => value is T): T {
  try {
    const position: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (isPosition(position)) return position
  } catch {
    // Reported below, like any other invalid cursor.
  }
  throw invalid('cursor is invalid. Pass the cursor of the previous page unchanged.')
}

export const isText = (value: unknown): value is string => typeof value === 'string'

export const isNumber = (value: unknown): value is number => typeof value === 'number'

/** A rule's priority and id. */
export const isRank = (value: unknown): value is readonly [number, string] =>
  Array.isArray(value) && value.length === 2 && isNumber(value[0]) && isText(value[1])

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
