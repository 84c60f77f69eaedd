/** Entry `fluxgate-js/compat/nestjs-throttler`: a storage for @nestjs/throttler 6, in memory or on Redis. */
import type { HitCounters } from './counters/hit-counters.js'
import { MemoryCounters } from './counters/memory-counters.js'
import { RedisCounters } from './counters/redis-counters.js'

export type { ThrottlerRecord, ThrottlerStorageOptions }

/** Options of `FluxGateThrottlerStorage`. */
interface ThrottlerStorageOptions {
  /** A URI such as `redis://127.0.0.1:6379`, or an ioredis or node-redis client. Default: counts in this process. */
  redis?: string | object | undefined
  /** Prefix of the keys in Redis. Default `throttler:`. */
  prefix?: string | undefined
}

/** The state of a key. Times are whole seconds, rounded up. */
interface ThrottlerRecord {
  /** The number of hits in the current window. */
  totalHits: number
  /** Seconds until the window ends. */
  timeToExpire: number
  /** True if the key is blocked. */
  isBlocked: boolean
  /** Seconds until the block ends; 0 if the key is not blocked. */
  timeToBlockExpire: number
}

/**
 * A storage for `ThrottlerModule.forRoot({ throttlers, storage })`. Each request is one atomic call.
 *
 * @example
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 10 }], storage: new FluxGateThrottlerStorage({ redis: uri }) })
 */
export class FluxGateThrottlerStorage {
  readonly #counters: HitCounters

  constructor({ redis, prefix = 'throttler:' }: ThrottlerStorageOptions = {}) {
    this.#counters = redis === undefined ? new MemoryCounters() : new RedisCounters(redis, prefix)
  }

  /** Counts a request. `ttl` and `blockDuration` are in milliseconds. */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerRecord> {
    const block = blockDuration > 0 ? ({ limit, ms: blockDuration, on: 'FIRST' } as const) : undefined
    const { hits, leftMs } = await this.#counters.add(`${throttlerName}:${key}`, 1, ttl, block)
    const seconds = Math.ceil(leftMs / 1000)
    const isBlocked = hits > limit
    return {
      totalHits: Math.min(hits, limit + 1),
      timeToExpire: seconds,
      isBlocked,
      timeToBlockExpire: isBlocked ? seconds : 0,
    }
  }

  /** Closes the connection that the storage opened. Called by Nest. */
  async onApplicationShutdown(): Promise<void> {
    await this.#counters.close()
  }
}
