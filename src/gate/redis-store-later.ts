import type { BucketStore } from '../core/bucket-store.js'
import type { RedisStore } from '../stores/redis/redis-store.js'
import type { OpenRedisStore } from './open-store.js'

/**
 * A `redisStore` whose module is imported in the background, so that middleware with in-memory buckets never loads the Redis
 * code. Calls wait until the module is loaded. `openStore` validates the address and the options beforehand, so that errors are
 * thrown synchronously.
 */
export const redisStoreLater: OpenRedisStore = (where, options): BucketStore => {
  let store: RedisStore | undefined
  const loading = import('../stores/redis/redis-store.js').then(({ redisStore }) => {
    store = redisStore(where, options)
    return store
  })
  const loaded = (): RedisStore | Promise<RedisStore> => store ?? loading
  return {
    charge: async (charges, peek) => (await loaded()).charge(charges, peek),
    refund: async (refunds) => (await loaded()).refund(refunds),
    reset: async (group, key) => (await loaded()).reset(group, key),
    retire: (group) => store?.retire?.(group),
    close: async () => (await loaded()).close(),
    get overrides() {
      return store?.overrides
    },
    availability: { isBounded: true, probe: async () => (await loaded()).probe() },
  }
}
