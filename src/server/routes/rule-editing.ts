import { ApiProblem, invalidRequest } from '../api-problem.js'
import type { Reply } from '../route.js'

/** What rule sets and rules have in common when they are edited. */
export const etagHeader = { ETag: 'The version, for `If-Match`.' }

export const conditional = {
  'If-Match': 'The ETag that was read: another version is not overwritten (412).',
  'If-None-Match': '`*`: create, and do not replace (412).',
}

export const noContent: Reply = { status: 204 }

/** A document that is put at a URL has its id from there, and may repeat it. */
export function withId(body: unknown, id: string): object {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalidRequest('body', 'is not an object')
  const given = (body as { id?: unknown }).id
  if (given !== undefined && given !== id)
    throw invalidRequest('id', 'is another one than that of the URL; leave it out, or make it the same')
  return given === undefined ? { id, ...body } : body
}

export const nothingHere = (detail: string): ApiProblem => new ApiProblem('FLUXGATE_NOT_FOUND', detail)
