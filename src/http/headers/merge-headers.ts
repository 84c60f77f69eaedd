type Headers = Readonly<Record<string, string>>

/** A response on which an earlier limit may have set rate limit headers. */
export interface EarlierHeaders {
  /** Takes the lower-case name. */
  getHeader(name: string): unknown
}

/** As `EarlierHeaders`, for headers that are not on a response yet. */
export function earlierHeaders(headers: Headers): EarlierHeaders {
  const entries = Object.entries(headers)
  return { getHeader: (name) => entries.find(([known]) => known.toLowerCase() === name)?.[1] }
}

/**
 * Returns the headers to set on a response that several limits apply to. RateLimit-Policy lists the policies of all limits. The
 * other headers describe the limit with the fewest remaining permits, or the limit that rejects.
 */
export function mergeHeaders(headers: Headers, earlier: EarlierHeaders, isRejection: boolean): Headers {
  const policies = earlier.getHeader('ratelimit-policy')
  const remaining = earlier.getHeader('x-ratelimit-remaining')
  if (policies === undefined && remaining === undefined) return headers
  const merged: Record<string, string> = { ...headers }
  if (typeof policies === 'string' && headers['RateLimit-Policy'] !== undefined)
    merged['RateLimit-Policy'] = `${policies}, ${headers['RateLimit-Policy']}`
  if (isRejection) return merged
  if (remainingIn(earlier.getHeader('ratelimit')) <= remainingIn(headers.RateLimit)) delete merged.RateLimit
  if (numberOf(remaining) <= numberOf(headers['X-RateLimit-Remaining']))
    for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']) delete merged[name]
  return merged
}

/** The `r` of a RateLimit header. */
const remainingIn = (text: unknown): number => numberOf(/;r=(\d+);t=\d+$/.exec(String(text))?.[1])

/** A missing header does not restrict anything. */
const numberOf = (text: unknown): number => (text === undefined ? Number.POSITIVE_INFINITY : Number(text))
