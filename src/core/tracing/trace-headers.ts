import type { OpenTelemetryApi } from './open-telemetry.js'

/** The headers that continue the active trace in another process, such as `traceparent`; undefined if no trace is active. */
export function traceHeaders({ propagation, context }: OpenTelemetryApi): Readonly<Record<string, string>> | undefined {
  const carrier: Record<string, string> = {}
  propagation.inject(context.active(), carrier)
  for (const _ in carrier) return carrier
  return undefined
}
