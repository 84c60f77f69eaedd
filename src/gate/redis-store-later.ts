import type { BucketStore } from '../core/bucket-store.js'
import type { RedisStore } from '../stores/redis/redis-store.js'
import type { OpenRedisStore } from './open-store.js'

/**
 * `redisStore`, loaded in the background from now on: a middleware that counts in its own process, as most do, neither
 * loads nor keeps what it takes to count in Redis. Who asks before it is there waits for it. Mistakes in the address and the
 * options are for `openStore` to find, while there is somebody to hear of them.
 */
export const redisStoreLater: OpenRedisStore = (where, options): BucketStore => {
  let store: RedisStore | undefined
  const loading = import('../stores/redis/redis-store.js').then(({ redisStore }) => {
    store = redisStore(where, options)
    return store
  })
  const loaded = (): RedisStore | Promise<RedisStore> => store ?? loading
  return {
    charge: async (demands, peek) => (await loaded()).charge(demands, peek),
    refund: async (refunds) => (await loaded()).refund(refunds),
    reset: async (group, key) => (await loaded()).reset(group, key),
    retire: (group) => store?.retire?.(group),
    probe: async () => (await loaded()).probe(),
    close: async () => (await loaded()).close(),
    get overrides() {
      return store?.overrides
    },
    isBounded: true,
  }
}
