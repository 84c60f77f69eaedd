import { traceIdOf } from '../http/trace-id.js'
import type { Call } from './request/route.js'
import type { ServerLog } from './server-log.js'

/** Every change that is made through the server: who, what, and by which request. When is what the log adds to each line. */
export function audit(
  log: ServerLog,
  { by, headers }: Pick<Call, 'by' | 'headers'>,
  action: string,
  what: object,
): void {
  const traceId = traceIdOf(headers)
  log.info('a change was made', { action, ...what, by, ...(traceId !== undefined && { traceId }) })
}
