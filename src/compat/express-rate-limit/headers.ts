import { createHash } from 'node:crypto'
import type { DraftHeadersVersion, LimitedResponse, RateLimitInfo } from './options.js'

const secondsUp = (ms: number): number => Math.ceil(ms / 1000)

/** Without a reset time, the window is the longest possible wait. */
const resetSeconds = (windowMs: number, resetTime: Date | undefined): number =>
  resetTime === undefined ? secondsUp(windowMs) : Math.max(0, secondsUp(resetTime.getTime() - Date.now()))

/** Sets `X-RateLimit-*`. `Date` lets clients with a wrong clock interpret the reset time. */
export function setLegacyHeaders(response: LimitedResponse, { limit, remaining, resetTime }: RateLimitInfo): void {
  response.setHeader('X-RateLimit-Limit', String(limit))
  response.setHeader('X-RateLimit-Remaining', String(remaining))
  if (!(resetTime instanceof Date)) return
  response.setHeader('Date', new Date().toUTCString())
  response.setHeader('X-RateLimit-Reset', String(secondsUp(resetTime.getTime())))
}

/** Sets the headers of an IETF draft. `name` is the name of the limit in draft 8. */
export function setDraftHeaders(
  version: DraftHeadersVersion,
  response: LimitedResponse,
  info: RateLimitInfo,
  windowMs: number,
  name: string,
): void {
  const { limit, remaining, resetTime, key } = info
  const seconds = resetSeconds(windowMs, resetTime)
  const window = secondsUp(windowMs)
  if (version === 'draft-8') {
    response.append('RateLimit', `"${name}"; r=${remaining}; t=${seconds}`)
    response.append('RateLimit-Policy', `"${name}"; q=${limit}; w=${window}; pk=:${partitionKey(key)}:`)
    return
  }
  response.setHeader('RateLimit-Policy', `${limit};w=${window}`)
  if (version === 'draft-7') {
    response.setHeader('RateLimit', `limit=${limit}, remaining=${remaining}, reset=${seconds}`)
    return
  }
  response.setHeader('RateLimit-Limit', String(limit))
  response.setHeader('RateLimit-Remaining', String(remaining))
  response.setHeader('RateLimit-Reset', String(seconds))
}

/** Identifies a key without showing it. */
const partitionKey = (key: string): string =>
  Buffer.from(createHash('sha256').update(key).digest('hex').slice(0, 12)).toString('base64')

/** Sets `Retry-After`, to `seconds` if given. */
export function setRetryAfter(
  response: LimitedResponse,
  { resetTime }: RateLimitInfo,
  windowMs: number,
  seconds: number = resetSeconds(windowMs, resetTime),
): void {
  if (!response.headersSent) response.setHeader('Retry-After', String(seconds))
}
