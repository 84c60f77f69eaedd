/** Creates locks on the shared server or on a separate one, and closes them after the test. */
import { onTestFinished } from 'vitest'
import type { LockOptions, RedisLock } from '../../../src/lock.js'
import { redisLock } from '../../../src/lock.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

export function openLock(options: LockOptions = {}, where: string | object = sharedRedis().uri): RedisLock {
  return closedAfterTest(redisLock(where, { prefix: freshPrefix(), ...options }))
}

export function closedAfterTest<T extends { close(): Promise<void> }>(opened: T): T {
  onTestFinished(() => opened.close())
  return opened
}

/** Resolves with the reason when the signal aborts. */
export const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    signal.addEventListener('abort', () => resolve(signal.reason))
  })

export const lost = { code: 'FLUXGATE_LOCK_LOST' }
export const timedOut = { code: 'FLUXGATE_LOCK_TIMEOUT' }
