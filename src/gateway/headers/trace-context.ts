import { type OpenTelemetryApi, openTelemetryApi } from '../../core/tracing/open-telemetry.js'
import { traceHeaders } from '../../core/tracing/trace-headers.js'

/** The trace context of one request. */
export interface TraceContext {
  /** Headers of the active trace, which replace all `fields` of the client. Undefined if no trace is active. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Names of the headers that propagate traces, in lower case. */
  readonly fields: readonly string[]
  /** Calls `fn` in the context of the request, because a request may be sent while another one ends. */
  run<T>(fn: () => T): T
}

/**
 * Returns the trace context of the request that is being handled. Undefined without an OpenTelemetry SDK, so that gateways
 * without one have no step for it.
 */
export function traceContexts(): (() => TraceContext) | undefined {
  const api = openTelemetryApi()
  return api && (() => traceContext(api))
}

function traceContext(api: OpenTelemetryApi): TraceContext {
  const { context, propagation } = api
  const headers = traceHeaders(api)
  const active = context.active()
  const fields = [...propagation.fields(), ...Object.keys(headers ?? {})].map((name) => name.toLowerCase())
  return { headers, fields, run: (fn) => context.with(active, fn) }
}
