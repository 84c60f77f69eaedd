import type { RedisConnection } from '../client/connection.js'
import { wrapRedisError } from '../client/connection-errors.js'
import { runGuarded } from './guarded-script.js'
import { who } from './keeper.js'
import { createHoldable, type Holdable } from './lock.js'
import { checkNames } from './lock-keys.js'
import type { LockOptions } from './lock-options.js'
import { type LockState, RedisLocks } from './redis-locks.js'
import { WakeUps } from './wake-ups.js'

export interface RedisLock extends Holdable {
  /** Frees a lock, whoever holds it; false if it was free. Its holder is told when it prolongs its lease the next time. */
  forceUnlock(name: string): Promise<boolean>
  /** Who holds it, or `undefined`. */
  inspect(name: string): Promise<LockState | undefined>
}

/** Locks over a connection, which is closed with them. */
export function lockOn(connection: RedisConnection, options: LockOptions = {}): RedisLock {
  const { prefix = 'fluxgate', timeoutMs, ...defaults } = options
  const locks = new RedisLocks(connection, prefix)
  const holdable = createHoldable({
    keeper: locks,
    defaults,
    timeoutMs: callTimeout(timeoutMs),
    wakeUps: new WakeUps(connection, true),
    groupsOf: (names) => locks.groupsOf(names),
    run: runGuarded(connection, locks),
    close: () => connection.close(),
  })
  return {
    ...holdable,
    forceUnlock: (name) => asked('be freed', () => locks.unlock(checkNames(name)[0] as string)),
    inspect: (name) => asked('tell who holds it', () => locks.inspect(checkNames(name)[0] as string)),
  }
}

/** How long one call may take, unless it is said: never so long that there is no time left to ask again. */
export const callTimeout =
  (timeoutMs: number | undefined) =>
  (ttlMs: number): number =>
    timeoutMs ?? Math.min(1_000, ttlMs / 3)

async function asked<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw wrapRedisError(error, what, who)
  }
}
