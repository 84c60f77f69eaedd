import type { RedisConnection } from '../client/connection.js'
import { wrapRedisError } from '../client/errors.js'
import { subject } from './backend.js'
import { runGuarded } from './guarded-script.js'
import { createHoldable, type Holdable } from './holdable.js'
import { checkNames } from './keys.js'
import type { LockOptions } from './options.js'
import { type LockState, RedisLockBackend } from './redis-backend.js'
import { Waiters } from './waiters.js'

/** Locks of `redisLock`. */
export interface RedisLock extends Holdable {
  /**
   * Releases a lock regardless of its owner. Resolves with false if it was free. The holder notices when it next extends its
   * lease.
   */
  forceUnlock(name: string): Promise<boolean>
  /** Resolves with the state of a held lock, or `undefined` if it is free. */
  inspect(name: string): Promise<LockState | undefined>
}

/** Creates locks on a connection. Closing the locks closes the connection. */
export function createRedisLock(connection: RedisConnection, options: LockOptions = {}): RedisLock {
  const { prefix = 'fluxgate', timeoutMs, ...defaults } = options
  const locks = new RedisLockBackend(connection, prefix)
  const holdable = createHoldable({
    backend: locks,
    defaults,
    timeoutMs: callTimeout(timeoutMs),
    waiters: new Waiters(connection, true),
    groupsOf: (names) => locks.groupsOf(names),
    run: runGuarded(connection, locks),
    close: () => connection.close(),
  })
  return {
    ...holdable,
    forceUnlock: (name) => call('be released by force', () => locks.unlock(checkNames(name)[0] as string)),
    inspect: (name) => call('be inspected', () => locks.inspect(checkNames(name)[0] as string)),
  }
}

/** The timeout of one call. The default leaves time to retry within the lease. */
export const callTimeout =
  (timeoutMs: number | undefined) =>
  (ttlMs: number): number =>
    timeoutMs ?? Math.min(1_000, ttlMs / 3)

async function call<T>(what: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation()
  } catch (error) {
    throw wrapRedisError(error, what, subject)
  }
}
