import type { IncomingHttpHeaders } from 'node:http'
import { FluxGateError } from '../../core/errors.js'

/** The ETag of a version. */
export const etagOf = (version: unknown): string => `"${String(version)}"`

/** True if `If-None-Match` matches this version: `*`, or any tag of the list, including weak tags. */
export function isNotModified({ 'if-none-match': known }: IncomingHttpHeaders, version: unknown): boolean {
  if (known === undefined) return false
  return known.trim() === '*' || tagsOf(known).some((tag) => tag.replace(/^W\//, '') === etagOf(version))
}

/**
 * The version that an edit requires, from `If-Match` and then `If-None-Match` (RFC 9110, section 13.2.2): 0 if the edit must
 * create the resource, undefined for any version. `current` returns the present version, 0 if the resource does not exist.
 */
export async function expectedVersion(
  headers: IncomingHttpHeaders,
  current: () => Promise<number>,
): Promise<number | undefined> {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers
  if (match === undefined && noneMatch === undefined) return undefined
  if (match === undefined && noneMatch?.trim() === '*') return 0
  const tags = match === undefined ? [] : tagsOf(match)
  const only = tags.length === 1 ? versionOf(tags[0] as string) : undefined
  if (only !== undefined && noneMatch === undefined) return only
  const present = await current()
  const isMatch = match === undefined || (present > 0 && (match.trim() === '*' || tags.some(hasVersion(present))))
  if (isMatch && !(present > 0 && isNotModified(headers, present))) return present
  throw notExpected(present, isMatch ? 'If-None-Match excludes' : 'If-Match does not name')
}

function notExpected(present: number, why: string): FluxGateError {
  const state = present === 0 ? 'does not exist' : `has the ETag ${etagOf(present)}`
  return new FluxGateError('FLUXGATE_RULES_CONFLICT', `The resource ${state}, which ${why}. Nothing was changed.`)
}

const tagsOf = (header: string): string[] => header.split(',').map((tag) => tag.trim())

const hasVersion =
  (version: number) =>
  (tag: string): boolean =>
    versionOf(tag) === version

/** Undefined for foreign tags and for weak tags, which never match `If-Match`. */
function versionOf(tag: string): number | undefined {
  const [, quoted, bare] = /^(?:"(\d{1,15})"|(\d{1,15}))$/.exec(tag) ?? []
  const digits = quoted ?? bare
  return digits === undefined || Number(digits) === 0 ? undefined : Number(digits)
}
