import type { IncomingHttpHeaders } from 'node:http'
import { FluxGateError } from '../core/errors.js'
import { invalidRequest } from './api-problem.js'

/** A version as HTTP spells it. */
export const etagOf = (version: unknown): string => `"${String(version)}"`

/** Whether a client has this version already, so that it need not be sent again. */
export function isKnown({ 'if-none-match': known }: IncomingHttpHeaders, version: unknown): boolean {
  if (known === undefined) return false
  return known.trim() === '*' || tagsOf(known).some((tag) => tag.replace(/^W\//, '') === etagOf(version))
}

/**
 * The version that an edit is meant for, from `If-Match` and `If-None-Match: *`: 0 for what must not exist yet, undefined
 * for whatever is there. `current` tells the version that is there, 0 if there is none.
 */
export async function expectedVersion(
  { 'if-match': match, 'if-none-match': noneMatch }: IncomingHttpHeaders,
  current: () => Promise<number>,
): Promise<number | undefined> {
  if (noneMatch !== undefined) {
    if (noneMatch.trim() === '*') return 0
    throw invalidRequest('If-None-Match', 'is for changes that must create something; allowed: *')
  }
  if (match === undefined) return undefined
  const tags = tagsOf(match)
  const [only] = tags
  const version = tags.length === 1 ? versionOf(only as string) : undefined
  if (version !== undefined) return version
  // Any of several, or whatever is there: the one that is there now is the one that is meant.
  const present = await current()
  if (present > 0 && (match.trim() === '*' || tags.some((tag) => versionOf(tag) === present))) return present
  const found = present === 0 ? 'is not there' : `has the ETag ${etagOf(present)}`
  throw new FluxGateError(
    'FLUXGATE_RULES_CONFLICT',
    `What is to be changed ${found}, which If-Match does not name. Nothing was changed.`,
  )
}

const tagsOf = (header: string): string[] => header.split(',').map((tag) => tag.trim())

/** Undefined for a tag that no version has: those of other makes, and weak ones, which promise nothing. */
function versionOf(tag: string): number | undefined {
  const [, quoted, bare] = /^(?:"(\d{1,15})"|(\d{1,15}))$/.exec(tag) ?? []
  const digits = quoted ?? bare
  return digits === undefined || Number(digits) === 0 ? undefined : Number(digits)
}
