import type {
  BandResult,
  Charge,
  ChargeResult,
  LeaseResult,
  LeasingStore,
  Settlement,
} from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { batchSize, countDemand, isRunningLow, isWorthwhile, restartCount, roomOf, urgentBelow } from './batch.js'
import type { Demand } from './hot-keys.js'
import {
  addLease,
  addRemaining,
  discard,
  dropEndedWindows,
  giveBack,
  isFresh,
  type Pool,
  pooledResult,
  settleSpent,
  spend,
} from './pool.js'
import { LeasePools, type PoolLimits } from './pools.js'

export interface LenderOptions extends PoolLimits {
  readonly clock: Clock
}

/** Batches are renewed and returned at this interval, so that those of many keys share a call. */
const sweepMs = 25
/** Permits of a pool without requests for this long are returned. */
const idleMs = 250
/** Lots that end sooner than this after the next sweep are returned now, before the store ends them. */
const leadMs = 50
/** Maximum number of settlements in one call. */
const maxSettlements = 64

/** Leases permits from the store, serves the decisions that wait for them, and returns unused permits. */
export class Lender {
  readonly pools: LeasePools
  readonly #store: LeasingStore
  readonly #clock: Clock
  readonly #minRequests: number
  readonly #inFlight = new Set<Promise<void>>()
  #cancelSweep: (() => void) | undefined
  #closed = false
  /** The time of a reply of the store, averaged over the last ones. */
  #replyMs = 0
  #isTiming = false

  constructor(store: LeasingStore, { clock, ...limits }: LenderOptions) {
    this.#store = store
    this.#clock = clock
    this.#minRequests = limits.minRequests
    this.pools = new LeasePools(limits)
  }

  /** Counts a request of a key without a pool. Returns the demand of the key if it should be leased. */
  count({ group, key, permits }: Charge, now: number): Demand | undefined {
    return this.#closed ? undefined : this.pools.count(group, key, permits, now, this.#replyMs)
  }

  /** Charges the store. Measures the time of its reply, one call at a time. */
  charge(charges: readonly Charge[], now: number): Promise<ChargeResult> {
    const reply = this.#store.charge(charges, false)
    if (this.#isTiming) return reply
    this.#isTiming = true
    const replied = (): void => {
      this.#isTiming = false
      this.#replied(now)
    }
    reply.then(replied, replied)
    return reply
  }

  #replied(sentAt: number): void {
    this.#replyMs += (Math.max(0, this.#clock.now() - sentAt) - this.#replyMs) / 4
  }

  isWorthwhile(pool: Pool, now: number): boolean {
    return isWorthwhile(pool, now, this.#replyMs)
  }

  /**
   * Opens the pool of a busy key after one of its requests was granted, unless the store has too few permits left for a batch.
   * The next sweep leases the first batch, with those of other keys.
   */
  open({ group, key, permits }: Charge, demand: Demand, results: readonly BandResult[]): void {
    if (this.#closed || this.pools.find(group, key) !== undefined) return
    if (results.some(({ remaining }) => remaining < permits * this.#minRequests)) return
    const pool = this.pools.open(group, key)
    pool.requests = demand.requests
    pool.demand = demand.requests * permits
    pool.countedFrom = demand.countedFrom
    pool.usedAt = this.#clock.now()
    if (this.#cancelSweep === undefined) this.#armSweep()
  }

  /** Returns lots that have ended, so that the others may be spent. */
  dropEnded(pool: Pool, now: number): void {
    if (isFresh(pool, now)) return
    if (pool.terms.areWindows && now >= pool.repliedAt) {
      dropEndedWindows(pool, now)
      return
    }
    const settlements: Settlement[] = []
    // If the clock has stepped back, it is unknown which lots have ended, so all are returned.
    giveBack(pool, settlements, now < pool.repliedAt ? undefined : now)
    this.settle(settlements)
  }

  /** Waits for the lease that is in flight or is requested directly afterwards. */
  waitForLease(pool: Pool, charges: readonly Charge[], permits: number): Promise<ChargeResult> {
    return new Promise((resolve, reject) => {
      pool.queue.push({ charges, permits, resolve, reject })
      pool.queued += permits
    })
  }

  /** Leases permits, and settles spent ones in the same turn, so that the bucket has room. */
  lease(pool: Pool, needed: number, wanted: number, now: number): void {
    const { group, key } = pool
    pool.requested = wanted
    pool.batch = wanted
    pool.urgentBelow = urgentBelow(pool, wanted, now)
    const settlements: Settlement[] = []
    settleSpent(pool, settlements)
    this.settle(settlements)
    const first = pool.queue[0]
    this.#track(
      this.#store.leasing.lease({ group, key, permits: needed, wanted }).then(
        (result) => this.#arrived(pool, result, now, first?.permits),
        (error: unknown) => this.#failed(pool, error),
      ),
    )
  }

  /** Leases the next batch before the last one is used up. The store grants no batch that is too small to pay. */
  leaseAhead(pool: Pool, now: number): void {
    if (pool.requested > 0 || pool.isLast) return
    const wanted = Math.min(roomOf(pool), batchSize(pool, now))
    if (wanted >= pool.terms.minRequests) this.lease(pool, pool.terms.minRequests, wanted, now)
  }

  /** Best effort: if a settlement is lost, the permits return when the bucket refills. */
  settle(settlements: readonly Settlement[]): void {
    for (let from = 0; from < settlements.length; from += maxSettlements)
      this.#track(this.#store.leasing.settle(settlements.slice(from, from + maxSettlements)))
  }

  /** Returns the permits of these pools, including those of leases in flight. */
  end(pools: readonly Pool[]): void {
    const settlements: Settlement[] = []
    for (const pool of pools) this.#end(pool, settlements)
    this.settle(settlements)
  }

  /** Discards permits of a bucket that is being reset, because it will be full without them. */
  discard(pool: Pool): void {
    discard(pool)
    this.pools.delete(pool)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelSweep?.()
    this.end([...this.pools])
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight)
  }

  #end(pool: Pool, settlements: Settlement[]): void {
    giveBack(pool, settlements)
    pool.state = 'CLOSED'
    this.pools.delete(pool)
  }

  #arrived(pool: Pool, result: LeaseResult, requestedAt: number, firstPermits: number | undefined): void {
    const now = this.#clock.now()
    const { requested } = pool
    pool.requested = 0
    this.#replied(requestedAt)
    this.dropEnded(pool, now)
    pool.storeTick = result.now
    pool.repliedAt = now
    pool.results = result.bands
    addLease(pool, result, requestedAt)
    restartCount(pool, now)
    // The reply may be so late that its lease has already ended.
    this.dropEnded(pool, now)
    if ((result.lease?.permits ?? 0) < requested) pool.isLast = true
    this.#serve(pool, result, now, firstPermits)
    if (pool.state === 'DISCARDED') discard(pool)
    else if (pool.state === 'CLOSED' || (pool.isLast && pool.left === 0)) this.end([pool])
  }

  /** Serves the queue in order. A rejection applies to all decisions with the same permits; the others are charged by the store. */
  #serve(pool: Pool, result: LeaseResult, now: number, firstPermits: number | undefined): void {
    const { queue } = pool
    pool.queue = []
    pool.queued = 0
    let index = 0
    for (let next = queue[0]; next !== undefined && spend(pool, next.permits); next = queue[++index]) {
      countDemand(pool, next.permits, now)
      next.resolve(pooledResult(pool, now))
    }
    if (index === queue.length) return
    const rejection = { granted: false, now: result.now, bands: addRemaining(result.bands, pool.left) }
    for (const { charges, permits, resolve } of queue.slice(index))
      resolve(!result.granted && permits === firstPermits ? rejection : this.#store.charge(charges, false))
  }

  /** Without the store, the permits that are left can be spent, and no more are leased. */
  #failed(pool: Pool, error: unknown): void {
    const { queue } = pool
    pool.requested = 0
    pool.queue = []
    pool.queued = 0
    pool.isLast = true
    for (const { reject } of queue) reject(error)
  }

  /** Renews batches that run low, and returns permits that are not used or are about to end. */
  #sweep(): void {
    const now = this.#clock.now()
    const soon = now + sweepMs + leadMs
    const settlements: Settlement[] = []
    const renewals: Pool[] = []
    for (const pool of this.pools) {
      if (pool.requested > 0) continue
      if (pool.terms.areWindows) dropEndedWindows(pool, now)
      else if (!isFresh(pool, soon)) giveBack(pool, settlements, soon)
      if (now - pool.usedAt >= idleMs) this.#end(pool, settlements)
      else if (!isRunningLow(pool)) continue
      else if (!pool.isLast && this.isWorthwhile(pool, now)) renewals.push(pool)
      else if (!pool.isLast || pool.left === 0) this.#end(pool, settlements)
    }
    this.settle(settlements)
    for (const pool of renewals) this.leaseAhead(pool, now)
    this.#cancelSweep = undefined
    if (this.pools.size > 0) this.#armSweep()
  }

  /** One timer for all pools. It does not keep the process alive. */
  #armSweep(): void {
    const sweep = (): void => this.#sweep()
    if (this.#clock.schedule !== undefined) {
      this.#cancelSweep = this.#clock.schedule(sweepMs, sweep)
      return
    }
    const timer = setTimeout(sweep, sweepMs).unref()
    this.#cancelSweep = () => clearTimeout(timer)
  }

  #track(call: Promise<void>): void {
    const done = call
      .catch(() => {})
      .finally(() => {
        this.#inFlight.delete(done)
      })
    this.#inFlight.add(done)
  }
}
