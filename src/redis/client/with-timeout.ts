import { FluxGateError } from '../../core/errors.js'
import { type Deadline, Deadlines } from '../../core/scheduling/deadlines.js'
import { wrapRedisError } from './errors.js'

/** The timeout of a call, and its description in error messages. */
export interface BoundedCall {
  /** The subject of the error message, such as "The search index". */
  readonly subject: string
  /** The operation in the error message. Completes "failed to …". */
  readonly operation: string
  readonly timeoutMs: number
}

/**
 * Runs a Redis call with a deadline and returns its reply. Every error is a `FluxGateError`; after `timeoutMs` the call
 * rejects with `FLUXGATE_STORE_TIMEOUT`. Time in which the event loop was blocked does not count.
 */
export async function withTimeout<T>(
  { subject, operation, timeoutMs }: BoundedCall,
  call: () => Promise<T>,
): Promise<T> {
  const deadlines = new Deadlines(timeoutMs)
  let deadline: Deadline | undefined
  const timedOut = new Promise<never>((_, reject) => {
    const message = `${subject} failed to ${operation}: Redis did not reply within ${timeoutMs} ms. The command may still be executed.`
    deadline = deadlines.begin(() => reject(new FluxGateError('FLUXGATE_STORE_TIMEOUT', message)))
  })
  try {
    return await Promise.race([call(), timedOut])
  } catch (error) {
    throw wrapRedisError(error, operation, subject)
  } finally {
    if (deadline !== undefined) deadlines.end(deadline)
  }
}
