import type { BucketStore, Charge, ChargeResult, LeasingStore, Settlement } from '../../core/bucket-store.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { decorateStore } from '../../core/decorate-store.js'
import { checkRange } from '../../core/range.js'
import { batchSize, countDemand, roomOf } from './batch.js'
import { chargeSeveral } from './charge-several.js'
import { Lender } from './lender.js'
import { peekWithHeld } from './peek.js'
import { copyOf, heldResult, isFresh, type Pool, pooledResult, settleSpent, spend } from './pool.js'

export interface LeasedOptions {
  /** Maximum share of a bucket's capacity that this process holds; default 0.1. */
  readonly leaseShare?: number
  /** Number of requests per second from which a key is leased; default 32. A key with fewer is charged one by one. */
  readonly minRequests?: number
  /** Maximum number of buckets that are leased at the same time; others are charged one by one. Default 50,000. */
  readonly maxPools?: number
  /** Must not step back; default the monotonic system clock. */
  readonly clock?: Clock
}

export interface LeasedStore extends BucketStore {
  /** Leased permits that this process can still spend. */
  readonly heldPermits: number
}

/**
 * Decides leased rules in this process, from permits that were leased from the store in advance. It never allows more
 * requests than the store would: held permits count as taken in the store until they are settled or their lease ends, and a
 * lease ends here no later than in the store. All other rules are decided by the store.
 *
 * Only keys with many requests are leased. If too few permits are held, concurrent requests wait for one shared lease. A
 * request for more permits than may be held, or one that may wait for a refill, is charged by the store. A peek counts held
 * permits as available. Held permits can be spent while the store is unavailable. After a reset, other processes may still
 * spend the permits that they hold.
 */
export function leased(store: LeasingStore, options: LeasedOptions = {}): LeasedStore {
  const { leaseShare = 0.1, minRequests = 32, maxPools = 50_000, clock = systemClock } = options
  const lender = new Lender(store, {
    clock,
    leaseShare: checkRange('leaseShare', leaseShare, 0, 1),
    minRequests: checkRange('minRequests', minRequests, 1),
    maxPools: checkRange('maxPools', maxPools, 0),
  })

  /** Decides from held permits. The result is valid until the next call. */
  const chargeHeld = ({ group, key, permits, maxWaitTicks, shadow }: Charge): ChargeResult | undefined => {
    if (group.isLeased !== true || maxWaitTicks > 0 || shadow) return undefined
    const pool = lender.pools.find(group, key)
    if (pool === undefined || pool.left < permits || pool.queue.length > 0) return undefined
    const now = clock.now()
    if (!isFresh(pool, now)) return undefined
    spend(pool, permits)
    countDemand(pool, permits, now)
    if (pool.left < pool.urgentBelow) lender.leaseAhead(pool, now)
    return heldResult(pool, now)
  }

  /** Decides without enough held permits: waits for a batch, or charges the store. */
  const chargeOne = (charges: readonly Charge[], charge: Charge): Promise<ChargeResult> => {
    const { group, key, permits, maxWaitTicks } = charge
    const pool = lender.pools.find(group, key)
    if (maxWaitTicks > 0 || (pool !== undefined && permits >= pool.terms.maxPermits)) return chargeStore(charges, pool)
    const now = clock.now()
    if (pool === undefined) return chargeUnleased(charges, charge, now)
    lender.dropEnded(pool, now)
    if (pool.queue.length === 0 && spend(pool, permits)) {
      countDemand(pool, permits, now)
      return Promise.resolve(pooledResult(pool, now))
    }
    if (pool.requested > 0) {
      const isEnough = pool.left + pool.requested - pool.queued >= permits
      if (isEnough) return lender.waitForLease(pool, charges, permits)
      countDemand(pool, permits, now)
      return store.charge(charges, false)
    }
    const needed = permits - pool.left
    const wanted = Math.min(roomOf(pool), needed + batchSize(pool, now))
    countDemand(pool, permits, now)
    // Before the first batch, which the next sweep leases.
    if (pool.batch === 0) return store.charge(charges, false)
    if (pool.isLast || wanted <= needed || !lender.isWorthwhile(pool, now)) return chargeStore(charges, pool)
    const result = lender.waitForLease(pool, charges, permits)
    lender.lease(pool, needed, wanted, now)
    return result
  }

  /** Returns held permits first, so that this decision can use them too. The key is leased again if it stays busy. */
  const chargeStore = (charges: readonly Charge[], pool: Pool | undefined): Promise<ChargeResult> => {
    if (pool !== undefined && pool.requested === 0) lender.end([pool])
    return store.charge(charges, false)
  }

  /** Charges a key without a lease, and opens its pool if it has many requests. */
  const chargeUnleased = (charges: readonly Charge[], charge: Charge, now: number): Promise<ChargeResult> => {
    const demand = lender.count(charge, now)
    const reply = lender.charge(charges, now)
    if (demand !== undefined)
      reply.then(
        ({ granted, bands }) => {
          if (granted) lender.open(charge, demand, bands)
        },
        () => {},
      )
    return reply
  }

  const { variants } = store

  return {
    get heldPermits() {
      let held = 0
      for (const { left, taken } of lender.pools) held += left + taken
      return held
    },
    ...decorateStore(store, {
      charge(charges, peek) {
        let isLeased = false
        for (let i = 0; i < charges.length && !isLeased; i++) isLeased = (charges[i] as Charge).group.isLeased === true
        if (!isLeased) return store.charge(charges, peek)
        if (peek) return peekWithHeld(store, lender, charges, clock)
        const [first] = charges as [Charge]
        if (charges.length > 1 || first.shadow) return chargeSeveral(store, lender, charges, clock)
        const held = chargeHeld(first)
        return held === undefined ? chargeOne(charges, first) : Promise.resolve(copyOf(held))
      },
      chargeLocally: (charges) => (charges.length === 1 ? chargeHeld(charges[0] as Charge) : undefined),
      variants: variants && {
        charge(charge, variant) {
          // Held permits are returned first, so that they count as available.
          const pool = charge.group.isLeased ? lender.pools.find(charge.group, charge.key) : undefined
          if (pool !== undefined && pool.requested === 0) lender.end([pool])
          return variants.charge(charge, variant)
        },
      },
      refund(refunds) {
        const settlements: Settlement[] = []
        for (const { group, key } of refunds) {
          const pool = group.isLeased ? lender.pools.find(group, key) : undefined
          // Spent permits must be settled first, or the bucket has no room for the refund.
          if (pool !== undefined) settleSpent(pool, settlements)
        }
        lender.settle(settlements)
        return store.refund(refunds)
      },
      reset(group, key) {
        const pool = lender.pools.find(group, key)
        if (pool !== undefined) lender.discard(pool)
        return store.reset(group, key)
      },
      retire(group) {
        lender.end(lender.pools.of(group))
        store.retire?.(group)
      },
      async close() {
        await lender.close()
        await store.close()
      },
    }),
  }
}
