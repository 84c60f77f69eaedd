import { closeOnError } from '../../core/close-on-error.js'
import { checkArgument } from '../../validation/options.js'
import { connectRedis, type RedisLocation } from '../client/connect-redis.js'
import type { RedisConnection } from '../client/connection.js'
import { createHoldable, fairUnsupported, type Holdable } from './holdable.js'
import { invalid, type LockOptions, lockOptions, quorumOptions, semaphoreOptions } from './options.js'
import { quorumBackend } from './quorum-backend.js'
import { RedisLockBackend } from './redis-backend.js'
import { callTimeout, createRedisLock, type RedisLock } from './redis-lock.js'
import { semaphoreBackend } from './semaphore-backend.js'
import { Waiters } from './waiters.js'

/** Options of `quorumLock`. `timeoutMs` applies to each server: default 500, at most a twentieth of the lease, at least 5. */
export interface QuorumOptions extends LockOptions {
  /** Average delay between attempts in milliseconds, from 1 to 60,000; default 100. */
  readonly retryMs?: number
}

/** Options of `redisSemaphore`. */
export interface SemaphoreOptions extends LockOptions {
  /** Maximum number of concurrent holders, from 1 to 1,000,000. */
  readonly permits: number
}

/**
 * Creates a distributed lock on one Redis, Sentinel or Cluster.
 *
 * @param where a `redis://` or `rediss://` URI, connection options, or an ioredis or node-redis client. The caller closes a client
 *   that it passes in.
 * @throws `FLUXGATE_ARGUMENT_INVALID` if an option is invalid. Connection errors are reported by the first call.
 *
 * @example
 * ```ts
 * const lock = redisLock('redis://localhost:6379')
 * await lock.using('invoice:7', async (signal) => recalculate(7, { signal }))
 * ```
 */
export function redisLock(where: RedisLocation, options: LockOptions = {}): RedisLock {
  checkArgument('options', options, lockOptions)
  return createRedisLock(connectRedis(where, options.timeoutMs), options)
}

/**
 * Creates a Redlock: a lock held on the majority of several independent Redis servers, usually three or five. None of them may be
 * a replica of another. Calls reject with `FLUXGATE_STORE_FAILED` if fewer than a majority reply.
 *
 * @param where one entry per server, each as for `redisLock`.
 * @throws `FLUXGATE_ARGUMENT_INVALID` if the list is empty, an option is invalid, or `fair` is set.
 */
export function quorumLock(where: readonly RedisLocation[], options: QuorumOptions = {}): Holdable {
  if (!Array.isArray(where) || where.length === 0)
    throw invalid('quorumLock needs a non-empty list of Redis servers as its first argument.')
  checkArgument('options', options, quorumOptions)
  const { prefix = 'fluxgate', timeoutMs, retryMs = 100, ...defaults } = options
  if (defaults.fair) throw fairUnsupported()
  const instanceMs = (ttlMs: number): number => Math.max(5, Math.min(timeoutMs ?? 500, ttlMs / 20))
  const connections: RedisConnection[] = []
  const close = async (): Promise<void> => {
    await Promise.all(connections.map((connection) => connection.close()))
  }
  closeOnError(close, () => {
    for (const server of where) connections.push(connectRedis(server, instanceMs(defaults.ttlMs ?? 10_000)))
  })
  const members = connections.map((connection) => new RedisLockBackend(connection, prefix))
  return createHoldable({
    backend: quorumBackend(members, instanceMs, retryMs),
    defaults,
    // Covers acquiring, confirming, and releasing if either fails.
    timeoutMs: (ttlMs) => 4 * instanceMs(ttlMs),
    groupsOf: (names) => [names],
    close,
  })
}

/**
 * Creates a distributed semaphore: each name has at most `permits` holders at a time, over all processes.
 *
 * @param where a connection, as for `redisLock`.
 * @throws `FLUXGATE_ARGUMENT_INVALID` if an option is invalid.
 */
export function redisSemaphore(where: RedisLocation, options: SemaphoreOptions): Holdable {
  checkArgument('options', options, semaphoreOptions)
  const { permits, prefix = 'fluxgate', timeoutMs, ...defaults } = options
  const connection = connectRedis(where, timeoutMs)
  return createHoldable({
    backend: semaphoreBackend(connection, prefix, permits),
    defaults,
    timeoutMs: callTimeout(timeoutMs),
    waiters: new Waiters(connection, false),
    groupsOf: (names) => names.map((name) => [name]),
    close: () => connection.close(),
  })
}
