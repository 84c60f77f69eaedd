import type {
  BucketGroup,
  Charge,
  ChargeResult,
  LeaseResult,
  LeasingStore,
  Settlement,
} from '../../core/bucket-store.js'
import { type Clock, ticksPerMs } from '../../core/clock.js'
import { batchSize, restartCount, roomOf } from './batch.js'
import {
  addLease,
  addRemaining,
  discard,
  giveBack,
  isFresh,
  type Pool,
  pooledResult,
  settleSpent,
  spend,
} from './pool.js'
import { LeasePools } from './pools.js'

export interface LenderOptions {
  readonly clock: Clock
  readonly leaseShare: number
  readonly maxPools: number
}

const sweepMs = 100
/** Permits of a pool without requests for this long are returned. */
const idleMs = 250
/** An empty pool without requests for this long is deleted. */
const dropMs = 1_000
/** Lots that end sooner than this after the next sweep are returned now, before the store ends them. */
const leadMs = 50
const maxPauseMs = 1_000
/** Maximum number of settlements in one call. */
const maxSettlements = 64

/** Leases permits from the store, serves the decisions that wait for them, and returns unused permits. */
export class Lender {
  readonly pools: LeasePools
  readonly #store: LeasingStore
  readonly #clock: Clock
  readonly #inFlight = new Set<Promise<void>>()
  #cancelSweep: (() => void) | undefined
  #closed = false

  constructor(store: LeasingStore, { clock, leaseShare, maxPools }: LenderOptions) {
    this.#store = store
    this.#clock = clock
    this.pools = new LeasePools(leaseShare, maxPools)
  }

  openPool(group: BucketGroup, key: string, permits: number): Pool | undefined {
    if (this.#closed) return undefined
    const pool = this.pools.open(group, key, permits)
    if (pool !== undefined && this.#cancelSweep === undefined) this.#armSweep()
    return pool
  }

  /** Returns lots that have ended, so that the others may be spent. */
  dropEnded(pool: Pool, now: number): void {
    if (isFresh(pool, now)) return
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
    restartCount(pool, now)
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

  /** Leases permits for future requests, if the demand justifies it. */
  leaseAhead(pool: Pool, now: number, batch = batchSize(pool, now)): void {
    if (pool.requested > 0 || now < pool.pausedUntil) return
    const wanted = Math.min(roomOf(pool), batch)
    if (wanted > 0) this.lease(pool, 1, wanted, now)
  }

  /** Best effort: if a settlement is lost, the permits return when the bucket refills. */
  settle(settlements: readonly Settlement[]): void {
    for (let from = 0; from < settlements.length; from += maxSettlements)
      this.#track(this.#store.leasing.settle(settlements.slice(from, from + maxSettlements)))
  }

  giveBack(pools: Iterable<Pool>): void {
    const settlements: Settlement[] = []
    for (const pool of pools) giveBack(pool, settlements)
    this.settle(settlements)
  }

  /** Returns the permits of these pools, including those of leases in flight. */
  end(pools: readonly Pool[]): void {
    this.giveBack(pools)
    for (const pool of pools) {
      pool.state = 'CLOSED'
      this.pools.delete(pool)
    }
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

  #arrived(pool: Pool, result: LeaseResult, requestedAt: number, firstPermits: number | undefined): void {
    const now = this.#clock.now()
    pool.requested = 0
    this.dropEnded(pool, now)
    pool.storeTick = result.now
    pool.repliedAt = now
    pool.results = result.bands
    addLease(pool, result, requestedAt)
    // The reply may be so late that its lease has already ended.
    this.dropEnded(pool, now)
    if (!result.granted) pool.pausedUntil = now + pauseMs(result)
    this.#serve(pool, result, now, firstPermits)
    if (pool.state === 'DISCARDED') discard(pool)
    else if (pool.state === 'CLOSED') this.giveBack([pool])
  }

  /** Serves the queue in order. A rejection applies to all decisions with the same permits; the others are charged by the store. */
  #serve(pool: Pool, result: LeaseResult, now: number, firstPermits: number | undefined): void {
    const { queue } = pool
    pool.queue = []
    pool.queued = 0
    let index = 0
    for (let next = queue[0]; next !== undefined && spend(pool, next.permits); next = queue[++index])
      next.resolve(pooledResult(pool, now))
    if (index === queue.length) return
    const rejection = { granted: false, now: result.now, bands: addRemaining(result.bands, pool.left) }
    for (const { charges, permits, resolve } of queue.slice(index))
      resolve(!result.granted && permits === firstPermits ? rejection : this.#store.charge(charges, false))
  }

  #failed(pool: Pool, error: unknown): void {
    const { queue } = pool
    pool.requested = 0
    pool.queue = []
    pool.queued = 0
    pool.pausedUntil = this.#clock.now() + idleMs
    for (const { reject } of queue) reject(error)
  }

  #sweep(): void {
    const now = this.#clock.now()
    const settlements: Settlement[] = []
    for (const pool of this.pools) {
      const unusedMs = now - pool.usedAt
      const soon = now + sweepMs + leadMs
      if (unusedMs >= idleMs && pool.requested === 0) giveBack(pool, settlements)
      else if (!isFresh(pool, soon)) giveBack(pool, settlements, soon)
      if (unusedMs >= dropMs && pool.requested === 0 && pool.taken === 0) this.pools.delete(pool)
    }
    this.settle(settlements)
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

/** The time until the store would grant again, by its last reply. */
function pauseMs({ bands }: LeaseResult): number {
  let longest = 0
  for (const { retryAfter } of bands) longest = Math.max(longest, retryAfter / ticksPerMs)
  return Math.min(longest, maxPauseMs)
}
