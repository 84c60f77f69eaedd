import type { Admission } from './proxy/admission.js'
import type { Route } from './routes/route.js'

/** What became of one request, as a line of an access log. No query, no identity but the address, and of headers only a trace id is in it. */
export interface AccessEntry {
  /** When it came, ISO 8601. */
  readonly time: string
  readonly method: string
  readonly path: string
  /** Null if the client left, or the connection broke, before there was an answer. */
  readonly status: number | null
  readonly durationMs: number
  /** Of the body that was sent back. */
  readonly bytes: number
  readonly route: string | null
  readonly decision: 'allowed' | 'held' | 'refused' | 'unlimited' | null
  readonly clientIp: string | null
  /** Of `traceparent` or `X-Trace-Id`, if the request has one that is one. */
  readonly traceId: string | null
  /** Whether the answer was cut off. */
  readonly aborted: boolean
}

export type AccessLog = (entry: AccessEntry) => void

export function decisionOf(admission: Admission, { limits }: Route): AccessEntry['decision'] {
  if (admission.kind !== 'PASS') return 'refused'
  if (admission.isHeld) return 'held'
  return limits.length === 0 ? 'unlimited' : 'allowed'
}

/** Long enough for any real path, short enough for a line. */
const longestPath = 1_024

/** Without the query, which may hold what nobody but the upstream should read. */
export function loggedPath(url: string): string {
  const end = Math.min(url.length, longestPath)
  const question = url.search(/[?#]/)
  return url.slice(0, question === -1 ? end : Math.min(question, end))
}
