import type { Admission } from './proxy/admission.js'
import type { Route } from './routes/route.js'

/** One line of the access log. It contains no query, no user or API key, and no header except the trace ID. */
export interface AccessEntry {
  /** Arrival time, ISO 8601. */
  readonly time: string
  readonly method: string
  readonly path: string
  /** Null if the connection ended before a response was sent. */
  readonly status: number | null
  readonly durationMs: number
  /** Size of the response body. */
  readonly bytes: number
  readonly route: string | null
  readonly decision: 'allowed' | 'held' | 'rejected' | 'unlimited' | null
  readonly clientIp: string | null
  /** From `traceparent` or `X-Trace-Id`; null if neither is valid. */
  readonly traceId: string | null
  /** True if the response is incomplete. */
  readonly aborted: boolean
}

export type AccessLog = (entry: AccessEntry) => void

export function loggedDecision(admission: Admission, { limits }: Route): AccessEntry['decision'] {
  if (admission.kind !== 'PASS') return 'rejected'
  if (admission.isHeld) return 'held'
  return limits.length === 0 ? 'unlimited' : 'allowed'
}

const maxLoggedPath = 1_024

/** The path without the query, which may contain secrets. */
export function loggedPath(url: string): string {
  const end = Math.min(url.length, maxLoggedPath)
  const question = url.search(/[?#]/)
  return url.slice(0, question === -1 ? end : Math.min(question, end))
}
