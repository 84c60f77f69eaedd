import type { RequestContext } from '../request-context.js'

/** The trace ID of `traceparent` (W3C Trace Context) or else of `X-Trace-Id`, which connects log lines of several processes. */
export function traceIdOf(headers: RequestContext['headers']): string | undefined {
  if (headers === undefined || headers === null) return undefined
  const parent = headers.traceparent
  const [, id] = typeof parent === 'string' ? (/^(?!ff)[\da-f]{2}-([\da-f]{32})-/.exec(parent) ?? []) : []
  if (id !== undefined && !/^0+$/.test(id)) return id
  const own = headers['x-trace-id']
  return typeof own === 'string' && /^[\w.:-]{1,128}$/.test(own) ? own : undefined
}
