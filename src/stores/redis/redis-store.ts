import type { BucketStore, SharedResets } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { given } from '../../core/omit-undefined.js'
import type { OverrideBook } from '../../core/overrides/override-book.js'
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
import { KnownRefusals, withKnownRefusals } from './cached-rejections.js'
import { checkStoreOptions } from './check-options.js'
import { RedisBuckets } from './redis-buckets.js'
import { RedisResets } from './resets.js'

export interface RedisStoreOptions extends Omit<ResilientOptions, 'clock' | 'onStateChange'> {
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  /** Whether what is known to be refused is refused without asking again; default true. */
  readonly knownRefusals?: boolean
  /**
   * How long decisions wait for the first connection, in milliseconds in which the event loop could run; default 2000. Only
   * then does the failure policy apply.
   */
  readonly connectTimeoutMs?: number
  /** The part of a capacity that this process holds at most under LEASED; default 0.1. */
  readonly leaseShare?: number
  /** For tests alone: time instead of the server's. */
  readonly clock?: Clock
}

const defaultConnectTimeoutMs = 2_000

export interface RedisStore extends BucketStore {
  readonly resets: SharedResets
  readonly overrides: OverrideBook
  /** Permits paid for in advance that this process may still spend. */
  readonly heldPermits: number
  /** `withinMs` defaults to `connectTimeoutMs`. */
  ready(withinMs?: number): Promise<void>
  probe(): Promise<void>
}

/**
 * Buckets in Redis, shared by all processes that name the same prefix. Takes a `redis://` or `rediss://` URI, the nodes of
 * a cluster, sentinels, or a client of ioredis or node-redis, which stays the caller's to close.
 */
export function redisStore(where: string | RedisOptions | object, options: RedisStoreOptions = {}): RedisStore {
  checkStoreOptions(options)
  const { prefix = 'fluxgate', clock, knownRefusals = true, leaseShare, ...others } = options
  const { connectTimeoutMs = defaultConnectTimeoutMs, ...resilience } = others
  const connection = connectRedis(where, resilience.timeoutMs)
  const opening = new Opening(connection, connectTimeoutMs)
  // A client of the caller's may be meant to connect with the first call.
  if (!isRedisClient(where)) void opening.over()
  const known = new KnownRefusals({ clock })
  const buckets = new RedisBuckets(connection, {
    prefix,
    clock,
    ...(knownRefusals && { observer: known }),
  })
  const whole = connection.isCluster ? acrossSlots(buckets, (group, key) => buckets.slotOf(group, key)) : buckets
  const bounded = resilient(whole, resilience)
  const store = leased(knownRefusals ? withKnownRefusals(bounded, known) : bounded, given({ leaseShare, clock }))
  const resets = new RedisResets(connection, prefix, resilience.timeoutMs)
  let isClosed = false
  const closed = (): Promise<never> =>
    Promise.reject(new FluxGateError('FLUXGATE_CLOSED', 'This store was closed. Create another one.'))
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
    overrides: forgetting(buckets.overrides, known, (group, key) => buckets.seenGroup(group, key)),
    get heldPermits() {
      return store.heldPermits
    },
    get unreachable() {
      return buckets.unreachable
    },
    get isConnected() {
      return connection.isConnected ?? true
    },
    /** Without a connection nothing is sent, and the client's own attempts to reconnect are the probes. */
    get breaker() {
      return buckets.unreachable === undefined ? (bounded.breaker ?? 'CLOSED') : 'OPEN'
    },
    isBounded: true,
  }
}

/** What is changed here holds here for the next decision, also for who is known to be refused. */
function forgetting(book: OverrideBook, known: KnownRefusals, seen: OverrideBook['seen']): OverrideBook {
  const after = async <T>(edit: Promise<T>): Promise<T> => {
    try {
      return await edit
    } finally {
      known.forgetAll()
    }
  }
  return {
    ...(seen && { seen }),
    get: (name) => book.get(name),
    list: (ruleSetId, ruleId, query) => book.list(ruleSetId, ruleId, query),
    put: (name, terms) => after(book.put(name, terms)),
    delete: (name) => after(book.delete(name)),
  }
}

/** Fails early if only a change of configuration can help; a server that is down may come back. */
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
