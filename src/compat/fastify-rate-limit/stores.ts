import type { Block, HitCounters } from '../counters/hit-counters.js'
import { MemoryCounters } from '../counters/memory-counters.js'
import { RedisCounters } from '../counters/redis-counters.js'
import type { PluginOptions, Settings } from './settings.js'

/** The hits of a key, and the milliseconds until its window ends. */
export interface Counted {
  readonly current: number
  readonly ttl: number
}

/** Counts the hits of one limit. */
export interface LimitStore {
  count(key: string, timeWindow: number, max: number): Promise<Counted>
  /** Reads without counting. */
  read(key: string, timeWindow: number, max: number): Promise<Counted>
  /** The store of a route with a limit of its own. */
  child(settings: Settings & { readonly routeInfo: unknown }): LimitStore
  /** Closes the connection that the store opened. */
  close(): Promise<void>
}

export function openStore(options: PluginOptions, settings: Settings): LimitStore {
  if (options.store !== undefined) return customStore(new options.store(settings))
  const { redis, nameSpace = 'fastify-rate-limit-', cache } = options
  if (redis === undefined) return memoryStore(settings, cache)
  return redisStore(new RedisCounters(redis, ''), settings, nameSpace)
}

const memoryStore = (settings: Settings, cache = 5000): LimitStore =>
  counterStore(new MemoryCounters(cache), settings, '', (route) => memoryStore(route, route.cache))

const redisStore = (counters: HitCounters, settings: Settings, prefix: string): LimitStore =>
  counterStore(counters, settings, prefix, (route) => {
    const { method, url } = route.routeInfo as { readonly method?: unknown; readonly url?: unknown }
    return redisStore(counters, route, `${prefix}${method}${url}-`)
  })

function counterStore(
  counters: HitCounters,
  { continueExceeding, exponentialBackoff }: Settings,
  prefix: string,
  child: LimitStore['child'],
): LimitStore {
  const on = continueExceeding ? 'EACH' : exponentialBackoff ? 'DOUBLE' : undefined
  return {
    child,
    async count(key, timeWindow, max) {
      const block: Block | undefined = on && { limit: max, ms: timeWindow, on }
      const { hits, leftMs } = await counters.add(prefix + key, 1, timeWindow, block)
      return { current: hits, ttl: leftMs }
    },
    async read(key) {
      const found = await counters.get(prefix + key)
      return { current: found?.hits ?? 0, ttl: Math.max(found?.leftMs ?? 0, 0) }
    },
    close: () => counters.close(),
  }
}

/** Adapts a store class with callbacks. */
function customStore(store: any): LimitStore {
  const call = (method: 'incr' | 'read', key: string, timeWindow: number, max: number): Promise<Counted> =>
    new Promise((resolve, reject) => {
      store[method](
        key,
        (error: unknown, counted: Counted) => (error ? reject(error) : resolve(counted)),
        timeWindow,
        max,
      )
    })
  return {
    count: (key, timeWindow, max) => call('incr', key, timeWindow, max),
    async read(key, timeWindow, max) {
      if (typeof store.read !== 'function')
        throw new Error('The store does not implement a `read` method, which { increment: false } requires.')
      return call('read', key, timeWindow, max)
    },
    child: (settings) => customStore(store.child(settings)),
    close: async () => {},
  }
}
