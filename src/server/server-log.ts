import { traceIdOf } from '../core/tracing/trace-id.js'
import type { Call } from './request/route.js'

/** The log of the server: changes, failures, start and stop. Fields must not contain secrets. */
export interface ServerLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

export const silentLog: ServerLog = { info() {}, warn() {}, error() {} }

/** Logs a change made through the API: the action, the caller and the trace ID. The logger adds the time. */
export function audit(
  log: ServerLog,
  { by, headers }: Pick<Call, 'by' | 'headers'>,
  action: string,
  what: object,
): void {
  const traceId = traceIdOf(headers)
  log.info('change applied', { action, ...what, by, ...(traceId !== undefined && { traceId }) })
}
