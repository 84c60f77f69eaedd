import type { RedisConnection } from '../../../../redis/client/connection.js'
import { createRedisLock, type RedisLock } from '../../../../redis/lock/redis-lock.js'
import { ActiveGenerations } from '../active-generations.js'
import { cleanupKey } from '../keys.js'
import { OverrideGenerations } from './override-generations.js'

const intervalMs = 600_000
/** An import without a heartbeat for this long is considered dead. */
const deadAfterMs = 600_000

const staleScript = `local time = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', time[1] * 1000 - ARGV[1], 'LIMIT', 0, 100)`

/**
 * Deletes generations that are not in use: those of imports whose process died, and replaced ones whose deletion was interrupted.
 * A lock ensures that one process at a time does this; every process tries about every ten minutes.
 */
export class OverrideCleanup {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #lock: RedisLock
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection
    this.#prefix = prefix
    this.#lock = createRedisLock(connection, { prefix })
  }

  start(): void {
    if (this.#timer !== undefined || this.#isClosed) return
    // Processes that start together must not try together.
    const delayMs = intervalMs * (0.5 + Math.random())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.run()
        // The ACL may forbid it, or Redis may be unavailable. Another process, or the next run, does it.
        .catch(() => {})
        .then(() => this.start())
    }, delayMs)
    this.#timer.unref()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Resolves with the number of deleted generations; 0 if another process is cleaning up. */
  async run(olderThanMs: number = deadAfterMs): Promise<number> {
    const hold = await this.#lock.tryAcquire('overrides:housekeeping')
    if (hold === undefined) return 0
    try {
      return await this.#deleteStale(olderThanMs, hold.signal)
    } finally {
      await hold.release()
    }
  }

  async #deleteStale(olderThanMs: number, signal: AbortSignal): Promise<number> {
    const key = cleanupKey(this.#prefix)
    const active = new ActiveGenerations(this.#connection, this.#prefix)
    const entries = await this.#connection.call(key, ['EVAL', staleScript, '1', key, String(olderThanMs)])
    let deleted = 0
    for (const entry of (entries as readonly unknown[]).map(String)) {
      if (signal.aborted || this.#isClosed) break
      const end = entry.indexOf(' ')
      const generation = Number(entry.slice(0, end))
      const [ruleSetId, ruleId] = JSON.parse(entry.slice(end + 1)) as [string, string]
      const rule = { ruleSetId, ruleId }
      // An active generation is never registered for cleanup. The check guards against losing all overrides of a rule.
      if ((await active.fetchGeneration(rule)) === generation) continue
      await new OverrideGenerations(this.#connection, this.#prefix, rule).delete(generation)
      deleted++
    }
    return deleted
  }
}
