import type { RequestContext } from '../request-context.js'

/** A trace that is recorded, and the span that sent the request. */
export interface SampledTrace {
  readonly traceId: string
  readonly spanId: string
}

type Headers = RequestContext['headers']

/** The trace ID of `traceparent` (W3C Trace Context) or else of `X-Trace-Id`, which connects log lines of several processes. */
export function traceIdOf(headers: Headers): string | undefined {
  if (headers === undefined || headers === null) return undefined
  const parent = headers.traceparent
  const [, id] = typeof parent === 'string' ? (/^(?!ff)[\da-f]{2}-([\da-f]{32})-/.exec(parent) ?? []) : []
  if (id !== undefined && !/^0+$/.test(id)) return id
  const own = headers['x-trace-id']
  return typeof own === 'string' && /^[\w.:-]{1,128}$/.test(own) ? own : undefined
}

const sampledParent = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f][13579bdf](?:$|-)/

/** The trace of `traceparent`, if its sampled flag is set. */
export function sampledTraceOf(headers: Headers): SampledTrace | undefined {
  const parent = headers?.traceparent
  const [, traceId, spanId] = typeof parent === 'string' ? (sampledParent.exec(parent) ?? []) : []
  return traceId === undefined || spanId === undefined ? undefined : { traceId, spanId }
}
