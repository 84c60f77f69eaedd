import type { BucketStore, Charge, ChargeResult, LeasingStore, Settlement } from '../../core/bucket-store.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { checkRange } from '../../core/range.js'
import { batchOf, count, isRunningLow, roomOf } from './batch.js'
import { Lender } from './lender.js'
import { peekBeside } from './peek.js'
import { isFresh, type Pool, pooledResult, settleSpent, spend } from './pool.js'
import { chargeSeveral } from './several.js'

export interface LeasedOptions {
  /** The part of a bucket's capacity that this process holds at most; default 0.1. */
  readonly leaseShare?: number
  /** How many buckets may be leased at once; others are charged one by one. Default 50 000. */
  readonly maxPools?: number
  /** Must not step back; default the system's monotonic one. */
  readonly clock?: Clock
}

export interface LeasedStore extends BucketStore {
  /** Permits paid for in advance that this process may still spend. */
  readonly heldPermits: number
}

/**
 * Rules that may be leased are decided in this process, from batches of permits that the store was paid for in advance. It
 * never admits more than the store would: what is held counts as taken there until it is settled or has ended, and ends
 * here no later than there. Everything else goes to the store as it is.
 *
 * A caller that finds too little waits for one lease together with others; one that asks for more than may be held, or is
 * willing to wait for a refill, is charged by the store. A peek counts what is held here as there to be had. While the
 * store is down, what is held may still be spent. After a reset, other processes may still spend what they hold.
 */
export function leased(store: LeasingStore, options: LeasedOptions = {}): LeasedStore {
  const { leaseShare = 0.1, maxPools = 50_000, clock = systemClock } = options
  const lender = new Lender(store, {
    clock,
    leaseShare: checkRange('leaseShare', leaseShare, 0, 1),
    maxPools: checkRange('maxPools', maxPools, 0),
  })

  /** What is held is given back first, so that this decision can have it too. */
  const chargeExactly = (demands: readonly Charge[], pool: Pool | undefined): Promise<ChargeResult> => {
    if (pool !== undefined && pool.left > 0 && pool.asked === 0) lender.giveBack([pool])
    return store.charge(demands, false)
  }

  const chargeOne = (
    demands: readonly Charge[],
    { group, key, permits, maxWaitTicks }: Charge,
  ): Promise<ChargeResult> => {
    if (maxWaitTicks > 0) return chargeExactly(demands, lender.pools.find(group, key))
    const pool = lender.poolOf(group, key, permits)
    if (pool === undefined || permits >= pool.most) return chargeExactly(demands, pool)
    const now = clock.now()
    if (pool.queue.length > 0 || !isFresh(pool, now) || !spend(pool, permits)) return lease(pool, demands, permits, now)
    count(pool, permits, now)
    if (isRunningLow(pool, now)) lender.askAhead(pool, now)
    return Promise.resolve(pooledResult(pool, now))
  }

  const lease = (pool: Pool, demands: readonly Charge[], permits: number, now: number): Promise<ChargeResult> => {
    const batch = batchOf(pool, now)
    count(pool, permits, now)
    lender.freshen(pool, now)
    if (pool.queue.length === 0 && spend(pool, permits)) return Promise.resolve(pooledResult(pool, now))
    if (pool.asked > 0) {
      const isEnough = pool.left + pool.asked - pool.queued >= permits
      return isEnough ? lender.wait(pool, demands, permits) : store.charge(demands, false)
    }
    const needed = permits - pool.left
    const wanted = Math.min(roomOf(pool), needed + batch)
    if (wanted <= needed || now < pool.quietUntil) return chargeExactly(demands, pool)
    const answer = lender.wait(pool, demands, permits)
    lender.ask(pool, needed, wanted, now)
    return answer
  }

  return {
    get heldPermits() {
      let held = 0
      for (const { left, taken } of lender.pools) held += left + taken
      return held
    },
    charge(demands, peek) {
      if (demands.length === 1) {
        const demand = demands[0] as Charge
        if (demand.group.isLeased !== true) return store.charge(demands, peek)
        if (!peek && !demand.shadow) return chargeOne(demands, demand)
      } else if (!isAnyLeased(demands)) return store.charge(demands, peek)
      return peek ? peekBeside(store, lender, demands, clock) : chargeSeveral(store, lender, demands, clock)
    },
    refund(refunds) {
      const settlements: Settlement[] = []
      for (const { group, key } of refunds) {
        const pool = group.isLeased ? lender.pools.find(group, key) : undefined
        // What was spent must be known to be, or there is no room for what comes back.
        if (pool !== undefined) settleSpent(pool, settlements)
      }
      lender.tell(settlements)
      return store.refund(refunds)
    },
    reset(group, key) {
      const pool = lender.pools.find(group, key)
      if (pool !== undefined) lender.forget(pool)
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
  }
}

function isAnyLeased(demands: readonly Charge[]): boolean {
  for (let i = 0; i < demands.length; i++) if ((demands[i] as Charge).group.isLeased === true) return true
  return false
}
