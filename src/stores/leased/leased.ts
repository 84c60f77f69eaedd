import type { BucketStore, Charge, ChargeResult, LeasingStore, Settlement } from '../../core/bucket-store.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { decorateStore } from '../../core/decorate-store.js'
import { checkRange } from '../../core/range.js'
import { batchSize, countDemand, isRunningLow, roomOf } from './batch.js'
import { chargeSeveral } from './charge-several.js'
import { Lender } from './lender.js'
import { peekWithHeld } from './peek.js'
import { isFresh, type Pool, pooledResult, settleSpent, spend } from './pool.js'

export interface LeasedOptions {
  /** Maximum share of a bucket's capacity that this process holds; default 0.1. */
  readonly leaseShare?: number
  /** Maximum number of buckets that are leased at the same time; others are charged one by one. Default 50 000. */
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
 * If too few permits are held, concurrent requests wait for one shared lease. A request for more permits than may be held, or
 * one that may wait for a refill, is charged by the store. A peek counts held permits as available. Held permits can be spent
 * while the store is unavailable. After a reset, other processes may still spend the permits that they hold.
 */
export function leased(store: LeasingStore, options: LeasedOptions = {}): LeasedStore {
  const { leaseShare = 0.1, maxPools = 50_000, clock = systemClock } = options
  const lender = new Lender(store, {
    clock,
    leaseShare: checkRange('leaseShare', leaseShare, 0, 1),
    maxPools: checkRange('maxPools', maxPools, 0),
  })

  /** Returns held permits first, so that this decision can use them too. */
  const chargeStore = (charges: readonly Charge[], pool: Pool | undefined): Promise<ChargeResult> => {
    if (pool !== undefined && pool.left > 0 && pool.requested === 0) lender.giveBack([pool])
    return store.charge(charges, false)
  }

  const chargeOne = (
    charges: readonly Charge[],
    { group, key, permits, maxWaitTicks }: Charge,
  ): Promise<ChargeResult> => {
    if (maxWaitTicks > 0) return chargeStore(charges, lender.pools.find(group, key))
    const pool = lender.openPool(group, key, permits)
    if (pool === undefined || permits >= pool.maxPermits) return chargeStore(charges, pool)
    const now = clock.now()
    if (pool.queue.length > 0 || !isFresh(pool, now) || !spend(pool, permits)) return lease(pool, charges, permits, now)
    countDemand(pool, permits, now)
    if (isRunningLow(pool, now)) lender.leaseAhead(pool, now)
    return Promise.resolve(pooledResult(pool, now))
  }

  const lease = (pool: Pool, charges: readonly Charge[], permits: number, now: number): Promise<ChargeResult> => {
    const batch = batchSize(pool, now)
    countDemand(pool, permits, now)
    lender.dropEnded(pool, now)
    if (pool.queue.length === 0 && spend(pool, permits)) return Promise.resolve(pooledResult(pool, now))
    if (pool.requested > 0) {
      const isEnough = pool.left + pool.requested - pool.queued >= permits
      return isEnough ? lender.waitForLease(pool, charges, permits) : store.charge(charges, false)
    }
    const needed = permits - pool.left
    const wanted = Math.min(roomOf(pool), needed + batch)
    if (wanted <= needed || now < pool.pausedUntil) return chargeStore(charges, pool)
    const result = lender.waitForLease(pool, charges, permits)
    lender.lease(pool, needed, wanted, now)
    return result
  }

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
        return charges.length === 1 && !first.shadow
          ? chargeOne(charges, first)
          : chargeSeveral(store, lender, charges, clock)
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
