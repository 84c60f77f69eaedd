import { FluxGateError } from '../core/errors.js'
import { wrapRedisError } from './connection-errors.js'

export interface Asking {
  /** Who is said to fail: "The search index". */
  readonly who: string
  /** Completes "failed to …". */
  readonly what: string
  readonly timeoutMs: number
}

/** What Redis answers, or why it does not: every error is one of ours, and nobody waits for longer than they wanted to. */
export async function within<T>({ who, what, timeoutMs }: Asking, ask: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    const message = `${who} was asked to ${what} and Redis had not answered after ${timeoutMs} ms; it may still happen.`
    timer = setTimeout(() => reject(new FluxGateError('FLUXGATE_STORE_TIMEOUT', message)), timeoutMs)
  })
  try {
    return await Promise.race([ask(), tooLate])
  } catch (error) {
    throw wrapRedisError(error, what, who)
  } finally {
    clearTimeout(timer)
  }
}
