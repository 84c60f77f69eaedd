import { traceIdOf } from '../http/trace-id.js'
import type { Call } from './request/route.js'
import type { ServerLog } from './server-log.js'

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
