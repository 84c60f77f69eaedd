import type { BucketStore, SharedResets } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import { given } from '../core/given.js'
import type { OverrideBook } from '../core/override-book.js'
import type { RedisConnection } from '../redis/connection.js'
import { isMisconfigured, wrapRedisError } from '../redis/connection-errors.js'
import { acrossSlots } from '../stores/across-slots.js'
import { KnownRefusals, withKnownRefusals } from '../stores/known-refusals.js'
import { leased } from '../stores/leased.js'
import { RedisBuckets } from '../stores/redis.js'
import { RedisResets } from '../stores/redis-resets.js'
import { type ResilientOptions, resilient } from '../stores/resilient.js'
import { checkStoreOptions } from './check-redis-store.js'
import { connectRedis } from './connect-redis.js'
import type { RedisOptions } from './open-redis-target.js'

export interface RedisStoreOptions extends Omit<ResilientOptions, 'clock' | 'onStateChange'> {
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  /** Whether what is known to be refused is refused without asking again; default true. */
  readonly knownRefusals?: boolean
  /** The part of a capacity that this process holds at most under LEASED; default 0.1. */
  readonly leaseShare?: number
  /** For tests alone: time instead of the server's. */
  readonly clock?: Clock
}

export interface RedisStore extends BucketStore {
  readonly resets: SharedResets
  readonly overrides: OverrideBook
  /** Permits paid for in advance that this process may still spend. */
  readonly heldPermits: number
  ready(withinMs: number): Promise<void>
  probe(): Promise<void>
}

/**
 * Buckets in Redis, shared by all processes that name the same prefix. Takes a `redis://` or `rediss://` URI, the nodes of
 * a cluster, sentinels, or a client of ioredis or node-redis, which stays the caller's to close.
 */
export function redisStore(where: string | RedisOptions | object, options: RedisStoreOptions = {}): RedisStore {
  checkStoreOptions(options)
  const { prefix = 'fluxgate', clock, knownRefusals = true, leaseShare, ...resilience } = options
  const connection = connectRedis(where, resilience.timeoutMs)
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
  return {
    charge: (demands, peek) => (isClosed ? closed() : store.charge(demands, peek)),
    refund: (refunds) => (isClosed ? closed() : store.refund(refunds)),
    reset: (group, key) => (isClosed ? closed() : store.reset(group, key)),
    retire: (group) => store.retire?.(group),
    async close() {
      await store.close()
      isClosed = true
    },
    ready: (withinMs) => ready(connection, buckets, resets, withinMs),
    probe: async () => (isClosed ? closed() : bounded.probe?.()),
    resets,
    overrides: forgetting(buckets.overrides, known, (group, key) => buckets.seenGroup(group, key)),
    get heldPermits() {
      return store.heldPermits
    },
    get breaker() {
      return bounded.breaker ?? 'CLOSED'
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

/** Learns early what only a change of configuration can mend; a server that is just not there may come back. */
async function ready(
  connection: RedisConnection,
  buckets: RedisBuckets,
  resets: RedisResets,
  withinMs: number,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, withinMs)
  })
  const asked = Promise.resolve()
    .then(() => connection.ready?.(withinMs))
    .then(() => Promise.all([buckets.checkAccess(), resets.read()]))
    .catch((error: unknown) => {
      if (isMisconfigured(error)) throw wrapRedisError(error, 'be used')
    })
  await Promise.race([asked, enough]).finally(() => clearTimeout(timer))
}
