import { FluxGateError } from '../core/errors.js'
import type { OpenRedis } from './open-store.js'

/**
 * Takes the place of `lazy-redis-store` in the build for edge runtimes, which have no TCP client for Redis. The package then
 * contains no Redis code there.
 */
export const lazyRedisStore: OpenRedis = () => {
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    'store must be "memory" or a BucketStore in an edge runtime or browser: Redis needs Node.js. See docs/guide/edge.md.',
  )
}

/** Takes the place of the export with the same name. */
export const lazySharedRedisStore: OpenRedis = lazyRedisStore
