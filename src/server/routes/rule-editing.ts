import { FluxGateError } from '../../core/errors.js'
import { ApiProblem, invalidRequest } from '../request/api-problem.js'
import type { Reply } from '../request/route.js'

/** What rule sets and rules have in common when they are edited. */
export const etagHeader = { ETag: 'The version, for `If-Match`.' }

/** Conditions of a change. RFC 9110, section 13.2.1: they do not count where the change would be 404 without them. */
export const conditional = {
  'If-Match': 'The ETag that was read, a list of ETags, or `*`: no other version is changed (412).',
  'If-None-Match': '`*`: create only. An ETag or a list, weak ones too: these versions are not changed (412).',
}

/** Condition of a read. */
export const unlessKnown = { 'If-None-Match': 'An ETag or a list, weak ones too, or `*`: 304 if it is current.' }

export const isConflict = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_RULES_CONFLICT'

/** Runs a change of something that must exist: a conflict with nothing is 404, whatever the conditions. */
export async function changing<T>(
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

/** A document that is put at a URL has its name from there, and may repeat it. */
export function withName(body: unknown, field: 'id' | 'key', name: string): object {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalidRequest('body', 'is not an object')
  const given = (body as Readonly<Record<string, unknown>>)[field]
  if (given !== undefined && given !== name)
    throw invalidRequest(field, 'is another one than that of the URL; leave it out, or make it the same')
  return given === undefined ? { [field]: name, ...body } : body
}

export const nothingHere = (detail: string): ApiProblem => new ApiProblem('FLUXGATE_NOT_FOUND', detail)

/** An id as somebody has written it, bounded. */
export const inQuotes = (id: string): string => JSON.stringify(id.slice(0, 128))
