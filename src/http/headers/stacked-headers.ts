type Headers = Readonly<Record<string, string>>

/** A response, as far as it knows what was said on it before. */
export interface SentPolicies {
  /** By its name in lower case. */
  getHeader(name: string): unknown
}

/** The same for headers that are not on a response yet. */
export function sentPolicies(headers: Headers): SentPolicies {
  const entries = Object.entries(headers)
  return { getHeader: (name) => entries.find(([known]) => known.toLowerCase() === name)?.[1] }
}

/**
 * What a response says after one more limit has spoken. All policies are listed; of what is left, the limit with less left
 * speaks, and one that refuses speaks in any case. `said` is what an earlier limit has put on the response.
 */
export function stackedHeaders(headers: Headers, said: SentPolicies, isRefusal: boolean): Headers {
  const policies = said.getHeader('ratelimit-policy')
  const left = said.getHeader('x-ratelimit-remaining')
  if (policies === undefined && left === undefined) return headers
  const together: Record<string, string> = { ...headers }
  if (typeof policies === 'string' && headers['RateLimit-Policy'] !== undefined)
    together['RateLimit-Policy'] = `${policies}, ${headers['RateLimit-Policy']}`
  if (isRefusal) return together
  if (leftIn(said.getHeader('ratelimit')) <= leftIn(headers.RateLimit)) delete together.RateLimit
  if (count(left) <= count(headers['X-RateLimit-Remaining']))
    for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']) delete together[name]
  return together
}

const leftIn = (text: unknown): number => count(/;r=(\d+);t=\d+$/.exec(String(text))?.[1])

/** What says nothing leaves everything. */
const count = (text: unknown): number => (text === undefined ? Number.POSITIVE_INFINITY : Number(text))
