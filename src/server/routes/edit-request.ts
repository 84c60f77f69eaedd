import { FluxGateError } from '../../core/errors.js'
import { ApiProblem, invalidRequest } from '../request/api-problem.js'
import type { Reply } from '../request/route.js'

/** Response header of rule sets and rules. */
export const etagHeader = { ETag: 'The version, for use in `If-Match`.' }

/** Request headers of edits. They are ignored if the edit would fail with 404 without them (RFC 9110, section 13.2.1). */
export const conditionalEditHeaders = {
  'If-Match': 'An ETag, a list of ETags, or `*`. Responds with 412 if none matches the current version.',
  'If-None-Match':
    '`*` to create only. An ETag or a list, including weak ETags: responds with 412 if one matches the current version.',
}

/** Request header of reads. */
export const conditionalReadHeaders = {
  'If-None-Match':
    'An ETag, a list, including weak ETags, or `*`. Responds with 304 if one matches the current version.',
}

export const isConflict = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_RULES_CONFLICT'

/** Runs a change of an existing resource. A conflict becomes 404 if the resource does not exist. */
export async function editExisting<T>(
  change: () => Promise<T>,
  exists: () => Promise<boolean>,
  missing: () => ApiProblem,
): Promise<T> {
  try {
    return await change()
  } catch (error) {
    if (isConflict(error) && !(await exists())) throw missing()
    throw error
  }
}

export const noContent: Reply = { status: 204 }

/** Adds the name from the URL to a document. The document may repeat it, but must not contradict it. */
export function withName(body: unknown, field: 'id' | 'key', name: string): object {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalidRequest('body', 'must be a JSON object')
  const own = (body as Readonly<Record<string, unknown>>)[field]
  if (own !== undefined && own !== name) throw invalidRequest(field, `must be the ${field} in the URL, or be omitted`)
  return own === undefined ? { [field]: name, ...body } : body
}

export const notFound = (detail: string): ApiProblem => new ApiProblem('FLUXGATE_NOT_FOUND', detail)

/** Quotes an ID from a request, truncated to 128 characters. */
export const quotedId = (id: string): string => JSON.stringify(id.slice(0, 128))
