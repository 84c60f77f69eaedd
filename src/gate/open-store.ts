import { checkRedisSettings } from '../config/store.js'
import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import { given as whatIsGiven } from '../core/omit-undefined.js'
import { isRedisClient } from '../redis/client/connection-of.js'
import { parseRedisUri } from '../redis/client/open/address.js'
import type { RedisOptions } from '../redis/client/open/target.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import type { RedisStoreOptions } from '../stores/redis/redis-store.js'
import { type ResilientOptions, resilient } from '../stores/resilient/resilient.js'
import { configInvalid } from '../validation/config-invalid.js'
import { isObject } from '../validation/fields.js'
import { noMistakes } from '../validation/issues.js'
import type { FluxGateOptions } from './options.js'

export type OpenRedisStore = (where: string | RedisOptions, options?: RedisStoreOptions) => BucketStore

export interface StoreParts {
  readonly openRedis: OpenRedisStore
  readonly clock: Clock
  readonly maxKeys?: number | undefined
  readonly resilience?: FluxGateOptions['resilience'] | undefined
}

/** A store that was given, or one by its name, its address or its settings. */
export function openStore(store: FluxGateOptions['store'], parts: StoreParts): BucketStore {
  const { clock, maxKeys, resilience, openRedis } = parts
  if (store === undefined || store === 'memory')
    return memoryStore({ clock, ...(maxKeys !== undefined && { maxKeys }) })
  if (isStore(store)) return store
  if (isRedisClient(store)) throw clientInvalid()
  if (typeof store === 'string' && parseRedisUri(store) !== undefined) return openRedis(store, resilience)
  if (isObject(store)) return openBySettings(store, parts)
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `store: found ${described(store)}; allowed: "memory", a URI such as redis://127.0.0.1:6379, an object such as { clusterNodes: [...] }, or a BucketStore.`,
  )
}

const clientInvalid = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    "store: found a client of Redis; allowed: a store that uses it, redisStore(client) of 'fluxgate-js/redis'.",
  )

/** Text without what may be a password. */
const described = (store: unknown): string =>
  typeof store === 'string' ? JSON.stringify(store.replace(/:[^:@/]*@/, ':***@')) : typeof store

function openBySettings(given: object, { resilience, openRedis }: StoreParts): BucketStore {
  const mistakes = noMistakes()
  const settings = checkRedisSettings(given, 'store', mistakes)
  if (mistakes.count > 0) throw configInvalid('The options of the store', mistakes.kept)
  const { prefix, timeoutMs, connectTimeoutMs, leaseShare, knownRefusals, ...address } = settings
  const own = whatIsGiven({ prefix, timeoutMs, connectTimeoutMs, leaseShare, knownRefusals })
  return openRedis(address, { ...resilience, ...own })
}

/** A store whose calls end: one in this process, one with a deadline of its own, or else one that is given a deadline. */
export const boundedStore = (store: BucketStore, options?: ResilientOptions): BucketStore =>
  store.chargeSync !== undefined || store.isBounded ? store : resilient(store, options)

/** Whether this is a store, as far as can be seen. */
export const isStore = (store: unknown): store is BucketStore =>
  typeof store === 'object' && store !== null && 'charge' in store && typeof store.charge === 'function'
