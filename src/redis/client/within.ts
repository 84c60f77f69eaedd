import { FluxGateError } from '../../core/errors.js'
import { type Deadline, Deadlines } from '../../core/scheduling/deadlines.js'
import { wrapRedisError } from './connection-errors.js'

export interface Asking {
  /** Who is said to fail: "The search index". */
  readonly who: string
  /** Completes "failed to …". */
  readonly what: string
  readonly timeoutMs: number
}

/**
 * Passes the reply of Redis on. Every error is a FluxGateError, and the call ends when its time has passed, as far as the
 * event loop could run.
 */
export async function within<T>({ who, what, timeoutMs }: Asking, ask: () => Promise<T>): Promise<T> {
  const deadlines = new Deadlines(timeoutMs)
  let deadline: Deadline | undefined
  const tooLate = new Promise<never>((_, reject) => {
    const message = `${who} was asked to ${what} and Redis had not answered after ${timeoutMs} ms; it may still happen.`
    deadline = deadlines.begin(() => reject(new FluxGateError('FLUXGATE_STORE_TIMEOUT', message)))
  })
  try {
    return await Promise.race([ask(), tooLate])
  } catch (error) {
    throw wrapRedisError(error, what, who)
  } finally {
    if (deadline !== undefined) deadlines.end(deadline)
  }
}
