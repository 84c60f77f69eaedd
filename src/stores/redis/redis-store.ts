import type { BucketStore, SharedResets } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { OverrideStorage } from '../../core/overrides/override-storage.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import { connectedWithin } from '../../redis/client/connected-within.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { isMisconfigured, wrapRedisError } from '../../redis/client/connection-errors.js'
import { isRedisClient } from '../../redis/client/connection-of.js'
import { Opening } from '../../redis/client/open/first-connection.js'
import type { RedisOptions } from '../../redis/client/open/target.js'
import { leased } from '../leased/leased.js'
import { type ResilientOptions, resilient } from '../resilient/resilient.js'
import { acrossSlots } from './across-slots.js'
import { CachedRejections, withCachedRejections } from './cached-rejections.js'
import { checkStoreOptions } from './check-options.js'
import { RedisBuckets } from './redis-buckets.js'
import { RedisResets } from './resets.js'

export interface RedisStoreOptions extends Omit<ResilientOptions, 'clock' | 'onStateChange'> {
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** Cache rejections in this process until they end, instead of asking Redis again; default true. */
  readonly knownRefusals?: boolean
  /**
   * How long decisions wait for the first connection, in milliseconds during which the event loop could run; default 2000. After
   * that, the failure policy applies.
   */
  readonly connectTimeoutMs?: number
  /** Maximum share of a capacity that this process may lease under LEASED; default 0.1. */
  readonly leaseShare?: number
  /** Replaces the clock of the Redis server, for tests only. */
  readonly clock?: Clock
}

const defaultConnectTimeoutMs = 2_000

export interface RedisStore extends BucketStore {
  readonly resets: SharedResets
  readonly overrides: OverrideStorage
  /** Leased permits that this process has not spent yet. */
  readonly heldPermits: number
  /**
   * Resolves once the store is connected, or after `withinMs` (default `connectTimeoutMs`). Rejects if Redis rejects the
   * connection or the scripts.
   */
  ready(withinMs?: number): Promise<void>
  /** Resolves if Redis can decide now; rejects otherwise. */
  probe(): Promise<void>
}

/**
 * Creates a bucket store in Redis. All processes that use the same prefix share its buckets.
 *
 * @param where a `redis://` or `rediss://` URI, connection options for a server, Cluster or Sentinel, or an ioredis or node-redis
 *   client. The caller closes a client that it passes in.
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * const gate = await createFluxGate({ rules: './rules.yaml', store: redisStore('redis://127.0.0.1:6379') })
 */
export function redisStore(where: string | RedisOptions | object, options: RedisStoreOptions = {}): RedisStore {
  checkStoreOptions(options)
  const { prefix = 'fluxgate', clock, knownRefusals = true, leaseShare, ...others } = options
  const { connectTimeoutMs = defaultConnectTimeoutMs, ...resilience } = others
  const connection = connectRedis(where, resilience.timeoutMs)
  const opening = new Opening(connection, connectTimeoutMs)
  // A client of the caller may be configured to connect lazily, with the first call.
  if (!isRedisClient(where)) void opening.over()
  const known = new CachedRejections({ clock })
  const buckets = new RedisBuckets(connection, {
    prefix,
    clock,
    ...(knownRefusals && { observer: known }),
  })
  const clustered = connection.isCluster ? acrossSlots(buckets, (group, key) => buckets.slotOf(group, key)) : buckets
  const bounded = resilient(clustered, resilience)
  const store = leased(
    knownRefusals ? withCachedRejections(bounded, known) : bounded,
    omitUndefined({ leaseShare, clock }),
  )
  const resets = new RedisResets(connection, prefix, resilience.timeoutMs)
  let isClosed = false
  const closed = (): Promise<never> =>
    Promise.reject(new FluxGateError('FLUXGATE_CLOSED', 'The store is closed. Create a new one.'))
  const opened = <T>(call: () => Promise<T>): Promise<T> =>
    opening.isOver ? (isClosed ? closed() : call()) : opening.over().then(() => opened(call))
  return {
    charge: (demands, peek) => opened(() => store.charge(demands, peek)),
    refund: (refunds) => opened(() => store.refund(refunds)),
    reset: (group, key) => opened(() => store.reset(group, key)),
    retire: (group) => store.retire?.(group),
    async close() {
      await store.close()
      isClosed = true
    },
    ready: (withinMs = connectTimeoutMs) => ready(connection, buckets, resets, withinMs),
    probe: async () => (isClosed ? closed() : bounded.probe?.()),
    resets,
    overrides: forgetting(buckets.overrides, known, (group, key) => buckets.cachedGroup(group, key)),
    get heldPermits() {
      return store.heldPermits
    },
    get unreachable() {
      return buckets.unreachable
    },
    get isConnected() {
      return connection.isConnected ?? true
    },
    /** OPEN without a connection: no calls are sent, and the client's reconnection attempts serve as probes. */
    get breaker() {
      return buckets.unreachable === undefined ? (bounded.breaker ?? 'CLOSED') : 'OPEN'
    },
    isBounded: true,
  }
}

/** Clears cached rejections after an edit, so that a changed override applies to the next decision of this process. */
function forgetting(
  overrides: OverrideStorage,
  known: CachedRejections,
  cached: OverrideStorage['cached'],
): OverrideStorage {
  const after = async <T>(edit: Promise<T>): Promise<T> => {
    try {
      return await edit
    } finally {
      known.forgetAll()
    }
  }
  return {
    ...(cached && { cached }),
    get: (id) => overrides.get(id),
    list: (ruleSetId, ruleId, query) => overrides.list(ruleSetId, ruleId, query),
    put: (id, terms) => after(overrides.put(id, terms)),
    delete: (id) => after(overrides.delete(id)),
  }
}

/** Rejects only for errors that need a configuration change. A server that is down may come back. */
async function ready(
  connection: RedisConnection,
  buckets: RedisBuckets,
  resets: RedisResets,
  withinMs: number,
): Promise<void> {
  const usable = Promise.resolve(connection.ready?.(withinMs))
    .then(() => Promise.all([buckets.checkAccess(), resets.read()]))
    .catch((error: unknown) => {
      if (isMisconfigured(error)) throw wrapRedisError(error, 'be used')
    })
  await connectedWithin(usable, withinMs)
}
