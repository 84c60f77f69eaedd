import { checkRedisSettings, splitRedisSettings } from '../config/store.js'
import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { withCapabilities } from '../core/decorate-store.js'
import { FluxGateError } from '../core/errors.js'
import { isRedisClient } from '../redis/client/connection-of.js'
import { parseRedisUri } from '../redis/client/open/address.js'
import type { RedisOptions } from '../redis/client/open/target.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import type { RedisStoreOptions } from '../stores/redis/redis-store.js'
import { type ResilientOptions, resilient } from '../stores/resilient/resilient.js'
import { configInvalid } from '../validation/config-invalid.js'
import { isObject } from '../validation/fields.js'
import { noIssues } from '../validation/issues.js'
import type { FluxGateOptions } from './options.js'

export type OpenRedisStore = (where: string | RedisOptions, options?: RedisStoreOptions) => BucketStore

export interface StoreParts {
  readonly openRedis: OpenRedisStore
  readonly clock: Clock
  readonly maxKeys?: number | undefined
  readonly resilience?: FluxGateOptions['resilience'] | undefined
}

/** Opens a store by name, URI or settings. Returns a `BucketStore` of the caller with its capabilities. */
export function openStore(store: FluxGateOptions['store'], parts: StoreParts): BucketStore {
  const { clock, maxKeys, resilience, openRedis } = parts
  if (store === undefined || store === 'memory')
    return memoryStore({ clock, ...(maxKeys !== undefined && { maxKeys }) })
  if (isStore(store)) return withCapabilities(store)
  if (isRedisClient(store)) throw clientInvalid()
  if (typeof store === 'string' && parseRedisUri(store) !== undefined) return openRedis(store, resilience)
  if (isObject(store)) return openBySettings(store, parts)
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `store must be "memory", a URI such as redis://127.0.0.1:6379, an object such as { clusterNodes: [...] }, or a BucketStore; received ${described(store)}.`,
  )
}

const clientInvalid = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    "store must be a BucketStore; received a Redis client. Wrap the client: redisStore(client) from 'fluxgate-js/redis'.",
  )

/** The value for a message, with the password of a URI masked. */
const described = (store: unknown): string =>
  typeof store === 'string' ? JSON.stringify(store.replace(/:[^:@/]*@/, ':***@')) : typeof store

function openBySettings(value: object, { resilience, openRedis }: StoreParts): BucketStore {
  const issues = noIssues()
  const settings = checkRedisSettings(value, 'store', issues)
  if (issues.count > 0) throw configInvalid('Options of the store', issues.kept)
  const { address, options } = splitRedisSettings(settings)
  return openRedis(address, { ...resilience, ...options })
}

/** Adds a timeout and a circuit breaker, unless the store is synchronous or has its own. */
export const boundedStore = (store: BucketStore, options?: ResilientOptions): BucketStore =>
  store.chargeSync !== undefined || store.availability?.isBounded ? store : resilient(store, options)

/** True if the value looks like a `BucketStore`. */
export const isStore = (store: unknown): store is BucketStore =>
  typeof store === 'object' && store !== null && 'charge' in store && typeof store.charge === 'function'
