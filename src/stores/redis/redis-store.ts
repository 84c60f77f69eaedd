import type { BanStorage } from '../../core/bans/ban-storage.js'
import type { BucketStore, ChargeVariants, SharedGenerations, StoreAvailability } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import type { HoldStorage } from '../../core/holds/hold-storage.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { OverrideStorage } from '../../core/overrides/override-storage.js'
import type { ReservationStorage } from '../../core/reservations/reservation-storage.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { isRedisClient } from '../../redis/client/connection-of.js'
import { isMisconfigured, wrapRedisError } from '../../redis/client/errors.js'
import type { RedisOptions } from '../../redis/client/open/target.js'
import { waitForConnection } from '../../redis/client/wait-for-connection.js'
import { leased } from '../leased/leased.js'
import { type ResilientOptions, resilient } from '../resilient/resilient.js'
import { acrossSlots } from './across-slots.js'
import { CachedRejections } from './cached-rejections.js'
import { checkStoreOptions } from './check-options.js'
import { RedisGenerations } from './generations.js'
import { RedisBuckets } from './redis-buckets.js'

/** Options of `redisStore`. */
export interface RedisStoreOptions extends Omit<ResilientOptions, 'clock' | 'onStateChange'> {
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** Cache rejections in this process until they end, instead of asking Redis again; default true. */
  readonly cachedRejections?: boolean
  /** @deprecated Use `cachedRejections`. */
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

/** A bucket store in Redis. Created by `redisStore`. */
export interface RedisStore extends BucketStore {
  readonly bans: BanStorage
  readonly generations: SharedGenerations
  readonly holds: HoldStorage
  readonly overrides: OverrideStorage
  readonly availability: StoreAvailability
  readonly variants: ChargeVariants
  readonly reservations: ReservationStorage
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
  const { knownRefusals = true, cachedRejections = knownRefusals, ...given } = options
  const { prefix = 'fluxgate', clock, leaseShare, ...others } = given
  const { connectTimeoutMs = defaultConnectTimeoutMs, ...resilience } = others
  const connection = connectRedis(where, resilience.timeoutMs)
  const rejectionCache = cachedRejections ? new CachedRejections({ clock }) : undefined
  const buckets = new RedisBuckets(connection, { prefix, clock, rejectionCache })
  const clustered = connection.isCluster ? acrossSlots(buckets, (key) => buckets.slotOf(key)) : buckets
  const bounded = resilient(clustered, resilience)
  const store = leased(bounded, omitUndefined({ leaseShare, clock }))
  const reservations = store.reservations as ReservationStorage
  const generations = new RedisGenerations(connection, prefix, resilience.timeoutMs)
  let isClosed = false
  const throwIfClosed = (): void => {
    if (isClosed) throw new FluxGateError('FLUXGATE_CLOSED', 'The store is closed. Create a new one.')
  }
  // Calls wait for the first connection attempt, so that connecting does not count against their timeout. The attempt ends
  // with a connection, with an error that only a configuration change can fix, or after `connectTimeoutMs`.
  let isConnecting = connection.ready !== undefined
  let attempt: Promise<void> | undefined
  const firstAttempt = (): Promise<void> => {
    // The error is ignored, because the call that follows reports it.
    attempt ??= Promise.resolve(connection.ready?.(connectTimeoutMs)).catch(() => {})
    return attempt
  }
  // A client of the caller may be configured to connect lazily, with the first call.
  if (!isRedisClient(where)) void firstAttempt()
  const afterConnecting = async <T>(call: () => Promise<T>): Promise<T> => {
    if (isConnecting && !connection.isConnected) await firstAttempt()
    isConnecting = false
    throwIfClosed()
    return call()
  }
  const ready = (withinMs = connectTimeoutMs): Promise<void> => awaitReady(connection, buckets, generations, withinMs)
  const probe = async (): Promise<void> => {
    throwIfClosed()
    await bounded.availability?.probe?.()
  }
  return {
    charge(charges, peek) {
      return isConnecting || isClosed ? afterConnecting(() => store.charge(charges, peek)) : store.charge(charges, peek)
    },
    // Permits are held only while the store is connected or was, and until it is closed.
    ...(store.chargeLocally && { chargeLocally: store.chargeLocally }),
    variants: {
      charge: (charge, variant) => afterConnecting(() => (store.variants as ChargeVariants).charge(charge, variant)),
    },
    reservations: {
      reserve: (request) => afterConnecting(() => reservations.reserve(request)),
      settle: (request) => afterConnecting(() => reservations.settle(request)),
      reservedIn: (group, key, now) => afterConnecting(async () => reservations.reservedIn?.(group, key, now) ?? []),
    },
    refund: (refunds) => afterConnecting(() => store.refund(refunds)),
    reset: (group, key) => afterConnecting(() => store.reset(group, key)),
    retire: (group) => store.retire?.(group),
    async close() {
      await store.close()
      isClosed = true
    },
    holds: {
      release: (holds) => afterConnecting(() => (store.holds as HoldStorage).release(holds)),
      renew: (holds) => afterConnecting(() => (store.holds as HoldStorage).renew(holds)),
    },
    bans: {
      get: (group, key) => afterConnecting(() => buckets.bans.get(group, key)),
      list: (group, query) => afterConnecting(() => buckets.bans.list(group, query)),
      set: (group, key, end) => afterConnecting(() => buckets.bans.set(group, key, end)),
      lift: (group, key) => afterConnecting(() => buckets.bans.lift(group, key)),
      onStart: (listener) => buckets.bans.onStart(listener),
    },
    generations,
    overrides: clearingRejections(buckets.overrides, rejectionCache, (group, key) => buckets.cachedGroup(group, key)),
    availability: {
      isBounded: true,
      get isConnected() {
        return connection.isConnected ?? true
      },
      get unreachable() {
        return buckets.availability.unreachable
      },
      /** OPEN without a connection: no calls are sent, and the client's reconnection attempts serve as probes. */
      get breaker() {
        return buckets.availability.unreachable === undefined ? bounded.availability?.breaker : 'OPEN'
      },
      get heldPermits() {
        return store.heldPermits
      },
      ready,
      probe,
    },
    ready,
    probe,
    get heldPermits() {
      return store.heldPermits
    },
  }
}

/** Clears cached rejections after an edit, so that a changed override applies to the next decision of this process. */
function clearingRejections(
  overrides: OverrideStorage,
  rejectionCache: CachedRejections | undefined,
  cached: OverrideStorage['cached'],
): OverrideStorage {
  const after = async <T>(edit: Promise<T>): Promise<T> => {
    try {
      return await edit
    } finally {
      rejectionCache?.clear()
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
async function awaitReady(
  connection: RedisConnection,
  buckets: RedisBuckets,
  generations: RedisGenerations,
  withinMs: number,
): Promise<void> {
  const usable = Promise.resolve(connection.ready?.(withinMs))
    .then(() => Promise.all([buckets.checkAccess(), generations.read()]))
    .catch((error: unknown) => {
      if (isMisconfigured(error)) throw wrapRedisError(error, 'be used')
    })
  await waitForConnection(usable, withinMs)
}
