import type { HitCounters, Hits } from '../counters/hit-counters.js'
import { MemoryCounters } from '../counters/memory-counters.js'
import { RedisCounters } from '../counters/redis-counters.js'
import type { ClientRateLimitInfo, LegacyStore, Options, Store } from './options.js'

/** Options of `FluxGateStore`. */
export interface FluxGateStoreOptions {
  /** A URI such as `redis://127.0.0.1:6379`, or an ioredis or node-redis client. Default: counts in this process. */
  redis?: string | object | undefined
  /** Prefix of the keys in Redis; different limits need different prefixes. Default `rl:`. */
  prefix?: string | undefined
}

/** A store for `rateLimit` of this module or of express-rate-limit, in memory or on Redis. Each hit is one atomic call. */
export class FluxGateStore implements Store {
  /** Default one minute; `rateLimit` sets it. */
  windowMs = 60_000
  readonly localKeys: boolean
  readonly prefix: string
  readonly #counters: HitCounters

  constructor({ redis, prefix = 'rl:' }: FluxGateStoreOptions = {}) {
    this.localKeys = redis === undefined
    this.prefix = prefix
    this.#counters = redis === undefined ? new MemoryCounters() : new RedisCounters(redis, prefix)
    if (redis !== undefined) return
    this.resetAll = async () => (this.#counters as MemoryCounters).clear()
  }

  /** Resets all keys. Only in memory: Redis cannot find the keys of one limit without a scan. */
  resetAll?: () => Promise<void>

  init({ windowMs }: Pick<Options, 'windowMs'>): void {
    this.windowMs = windowMs
  }

  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const hits = await this.#counters.get(key)
    return hits && infoOf(hits)
  }

  async increment(key: string): Promise<ClientRateLimitInfo> {
    return infoOf(await this.#counters.add(key, 1, this.windowMs))
  }

  async decrement(key: string): Promise<void> {
    const { hits } = await this.#counters.add(key, -1, this.windowMs)
    if (hits < 0) await this.#counters.add(key, -hits, this.windowMs)
  }

  async resetKey(key: string): Promise<void> {
    await this.#counters.delete(key)
  }

  async shutdown(): Promise<void> {
    await this.#counters.close()
  }
}

/** A store that counts in this process. */
export class MemoryStore extends FluxGateStore {}

const infoOf = ({ hits, leftMs }: Hits): ClientRateLimitInfo => ({
  totalHits: hits,
  resetTime: new Date(Date.now() + leftMs),
})

/** Adapts a store with callbacks. */
export function promisedStore(store: Store | LegacyStore): Store {
  if ('increment' in store || typeof store.incr !== 'function') return store as Store
  return {
    increment: (key) =>
      new Promise((resolve, reject) => {
        store.incr(key, (error, totalHits, resetTime) => (error ? reject(error) : resolve({ totalHits, resetTime })))
      }),
    decrement: (key) => store.decrement(key),
    resetKey: (key) => store.resetKey(key),
    resetAll: () => store.resetAll?.(),
  }
}
