import { ApiProblem, invalidRequest } from '../api-problem.js'
import type { Reply } from '../route.js'

/** What rule sets and rules have in common when they are edited. */
export const etagHeader = { ETag: 'The version, for `If-Match`.' }

export const conditional = {
  'If-Match': 'The ETag that was read: another version is not overwritten (412).',
  'If-None-Match': '`*`: create, and do not replace (412).',
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
