import { checkRedisSettings, splitRedisSettings } from '../config/store.js'
import type { BucketStore } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'
import { isRedisClient } from '../redis/client/connection-of.js'
import { parseRedisUri } from '../redis/client/open/address.js'
import type { RedisOptions } from '../redis/client/open/target.js'
import type { RedisStoreOptions } from '../stores/redis/redis-store.js'
import { configInvalid } from '../validation/config-invalid.js'
import { isObject } from '../validation/fields.js'
import { noIssues } from '../validation/issues.js'
import type { OpenRedis } from './open-store.js'

export type OpenRedisStore = (where: string | RedisOptions, options?: RedisStoreOptions) => BucketStore

/** Validates the URI or settings of a Redis store, and opens it with `open`. */
export const redisByUri =
  (open: OpenRedisStore): OpenRedis =>
  (store, resilience) => {
    if (isRedisClient(store)) throw clientInvalid()
    if (typeof store === 'string' && parseRedisUri(store) !== undefined) return open(store, resilience)
    if (!isObject(store)) throw storeInvalid(store)
    const issues = noIssues()
    const settings = checkRedisSettings(store, 'store', issues)
    if (issues.count > 0) throw configInvalid('Options of the store', issues.kept)
    const { address, options } = splitRedisSettings(settings)
    return open(address, { ...resilience, ...options })
  }

const storeInvalid = (store: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `store must be "memory", a URI such as redis://127.0.0.1:6379, an object such as { clusterNodes: [...] }, or a BucketStore; received ${described(store)}.`,
  )

const clientInvalid = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    "store must be a BucketStore; received a Redis client. Wrap the client: redisStore(client) from 'fluxgate-js/redis'.",
  )

/** The value for a message, with the password of a URI masked. */
const described = (store: unknown): string =>
  typeof store === 'string' ? JSON.stringify(store.replace(/:[^:@/]*@/, ':***@')) : typeof store
