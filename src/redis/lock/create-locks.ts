import { closeOnError } from '../../core/close-on-error.js'
import { checkRange } from '../../core/range.js'
import { connectRedis, type RedisPlace } from '../client/connect-redis.js'
import type { RedisConnection } from '../client/connection.js'
import { createHoldable, type Holdable, noOrder } from './lock.js'
import { callTimeout, lockOn, type RedisLock } from './lock-on.js'
import { checkOptions, invalid, type LockOptions, lockNames } from './lock-options.js'
import { QuorumLocks } from './quorum-locks.js'
import { RedisLocks } from './redis-locks.js'
import { SemaphorePermits } from './semaphore-permits.js'
import { WakeUps } from './wake-ups.js'

export interface QuorumOptions extends LockOptions {
  /** Average delay between attempts in milliseconds, from 1 to 60 000; default 100. */
  readonly retryMs?: number
}

export interface SemaphoreOptions extends LockOptions {
  /** Maximum number of concurrent holders, from 1 to 1 000 000. */
  readonly permits: number
}

/**
 * Creates a distributed lock on one Redis, Sentinel or Cluster.
 *
 * @param where a `redis://` or `rediss://` URI, connection options, or an ioredis or node-redis client. The caller closes a client
 *   that it passes in.
 */
export function redisLock(where: RedisPlace, options: LockOptions = {}): RedisLock {
  checkOptions('redisLock', options, lockNames)
  return lockOn(connectRedis(where, options.timeoutMs), options)
}

/**
 * Creates a Redlock: a lock held on the majority of several independent Redis servers, usually three or five. None of them may be
 * a replica of another.
 */
export function quorumLock(where: readonly RedisPlace[], options: QuorumOptions = {}): Holdable {
  if (!Array.isArray(where) || where.length === 0)
    throw invalid('quorumLock needs a non-empty list of Redis servers as its first argument.')
  const { retryMs = 100, ...others } = options ?? {}
  checkRange('retryMs', retryMs, 1, 60_000)
  checkOptions('quorumLock', others, lockNames)
  const { prefix = 'fluxgate', timeoutMs, ...defaults } = others
  if (defaults.fair) throw noOrder()
  const instanceMs = (ttlMs: number): number => Math.max(5, Math.min(timeoutMs ?? 500, ttlMs / 20))
  const connections: RedisConnection[] = []
  const close = async (): Promise<void> => {
    await Promise.all(connections.map((connection) => connection.close()))
  }
  closeOnError(close, () => {
    for (const place of where) connections.push(connectRedis(place, instanceMs(defaults.ttlMs ?? 10_000)))
  })
  const members = connections.map((connection) => new RedisLocks(connection, prefix))
  return createHoldable({
    keeper: new QuorumLocks(members, instanceMs, retryMs),
    defaults,
    // Covers acquiring, confirming, and releasing if either fails.
    timeoutMs: (ttlMs) => 4 * instanceMs(ttlMs),
    groupsOf: (names) => [names],
    close,
  })
}

/** Creates a distributed semaphore with `permits` holders per name. Accepts the same connections as `redisLock`. */
export function redisSemaphore(where: RedisPlace, options: SemaphoreOptions): Holdable {
  const { permits, ...others } = options ?? {}
  if (!Number.isInteger(permits)) throw invalid(`permits must be an integer; received ${String(permits)}.`)
  checkRange('permits', permits, 1, 1_000_000)
  checkOptions('redisSemaphore', others, lockNames)
  const { prefix = 'fluxgate', timeoutMs, ...defaults } = others
  const connection = connectRedis(where, timeoutMs)
  return createHoldable({
    keeper: new SemaphorePermits(connection, prefix, permits),
    defaults,
    timeoutMs: callTimeout(timeoutMs),
    wakeUps: new WakeUps(connection, false),
    groupsOf: (names) => names.map((name) => [name]),
    close: () => connection.close(),
  })
}
