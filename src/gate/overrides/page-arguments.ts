import type { PageQuery } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { EntryQuery } from '../../core/overrides/override-storage.js'

const maxPageSize = 1_000
const defaultPageSize = 50

/** Validates the query of a listing by key. */
export function pageArguments({
  prefix = '',
  limit = defaultPageSize,
  cursor = '',
}: Partial<PageQuery> & { readonly prefix?: string | undefined }): EntryQuery {
  for (const [name, text] of Object.entries({ prefix, cursor }))
    if (typeof text !== 'string') throw invalid(`${name} must be a string; received ${String(text)}.`)
  if (!Number.isInteger(limit) || limit < 1)
    throw invalid(`limit must be an integer of at least 1; received ${String(limit)}.`)
  return { prefix, after: Buffer.from(cursor, 'base64url').toString(), limit: Math.min(limit, maxPageSize) }
}

/** The cursor of a page that `next` follows, or null for the last page. */
export const pageCursor = (next: string | undefined): string | null =>
  next === undefined ? null : Buffer.from(next).toString('base64url')

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
