import type {
  BucketGroup,
  Charge,
  ChargeResult,
  LeaseResult,
  LeasingStore,
  Settlement,
} from '../../core/bucket-store.js'
import { type Clock, ticksPerMs } from '../../core/clock.js'
import { batchOf, roomOf, startCount } from './batch.js'
import { addLease, forget, giveBack, isFresh, type Pool, pooledResult, settleSpent, spend, withMore } from './pool.js'
import { LeasePools } from './pools.js'

export interface LenderOptions {
  readonly clock: Clock
  readonly leaseShare: number
  readonly maxPools: number
}

const sweepMs = 100
/** What nobody has asked for in this time is given back. */
const idleMs = 250
/** A pool that is empty and was not asked for in this time is dropped. */
const dropMs = 1_000
/** What ends sooner than this after the next sweep is given back now, so that the store hears of it in time. */
const leadMs = 50
const longestQuietMs = 1_000
/** As many as a store should have to look at in one piece of work. */
const settledAtOnce = 64

/** Gets leases from the store, hands them to those who wait for them, and sees to it that what is not used goes back. */
export class Lender {
  readonly pools: LeasePools
  readonly #store: LeasingStore
  readonly #clock: Clock
  readonly #underWay = new Set<Promise<void>>()
  #cancelSweep: (() => void) | undefined
  #closed = false

  constructor(store: LeasingStore, { clock, leaseShare, maxPools }: LenderOptions) {
    this.#store = store
    this.#clock = clock
    this.pools = new LeasePools(leaseShare, maxPools)
  }

  poolOf(group: BucketGroup, key: string, permits: number): Pool | undefined {
    if (this.#closed) return undefined
    const pool = this.pools.open(group, key, permits)
    if (pool !== undefined && this.#cancelSweep === undefined) this.#armSweep()
    return pool
  }

  /** Lets go of lots that have ended, so that what is there may be spent. */
  freshen(pool: Pool, now: number): void {
    if (isFresh(pool, now)) return
    const settlements: Settlement[] = []
    // Which have ended is not known if the clock has stepped back.
    giveBack(pool, settlements, now < pool.heardAt ? undefined : now)
    this.tell(settlements)
  }

  /** Waits for the lease that is under way, or is asked for right after. */
  wait(pool: Pool, demands: readonly Charge[], permits: number): Promise<ChargeResult> {
    return new Promise((resolve, reject) => {
      pool.queue.push({ demands, permits, resolve, reject })
      pool.queued += permits
    })
  }

  /** Leases, and tells in the same turn what was spent, so that there is room for it. */
  ask(pool: Pool, needed: number, wanted: number, now: number): void {
    const { group, key } = pool
    pool.asked = wanted
    pool.batch = wanted
    startCount(pool, now)
    const settlements: Settlement[] = []
    settleSpent(pool, settlements)
    this.tell(settlements)
    const asker = pool.queue[0]
    this.#track(
      this.#store.lease({ group, key, permits: needed, wanted }).then(
        (result) => this.#arrived(pool, result, now, asker?.permits),
        (error: unknown) => this.#failed(pool, error),
      ),
    )
  }

  /** Leases for those who are to come, if that is worth it. */
  askAhead(pool: Pool, now: number, batch = batchOf(pool, now)): void {
    if (pool.asked > 0 || now < pool.quietUntil) return
    const wanted = Math.min(roomOf(pool), batch)
    if (wanted > 0) this.ask(pool, 1, wanted, now)
  }

  /** Best effort: permits whose settlement is lost come back when the bucket refills. */
  tell(settlements: readonly Settlement[]): void {
    for (let from = 0; from < settlements.length; from += settledAtOnce)
      this.#track(this.#store.settle(settlements.slice(from, from + settledAtOnce)))
  }

  giveBack(pools: Iterable<Pool>): void {
    const settlements: Settlement[] = []
    for (const pool of pools) giveBack(pool, settlements)
    this.tell(settlements)
  }

  /** Gives back what these pools have, and what is still on its way to them. */
  end(pools: readonly Pool[]): void {
    this.giveBack(pools)
    for (const pool of pools) {
      pool.state = 'GIVEN_BACK'
      this.pools.delete(pool)
    }
  }

  /** The bucket is about to be full again, so that nothing needs to come back to it. */
  forget(pool: Pool): void {
    forget(pool)
    this.pools.delete(pool)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelSweep?.()
    this.end([...this.pools])
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  #arrived(pool: Pool, result: LeaseResult, askedAt: number, askedFor: number | undefined): void {
    const now = this.#clock.now()
    pool.asked = 0
    this.freshen(pool, now)
    pool.saidAt = result.now
    pool.heardAt = now
    pool.said = result.bands
    addLease(pool, result, askedAt)
    // An answer may come so late that its lease has ended.
    this.freshen(pool, now)
    if (!result.granted) pool.quietUntil = now + quietMs(result)
    this.#serve(pool, result, now, askedFor)
    if (pool.state === 'FORGOTTEN') forget(pool)
    else if (pool.state === 'GIVEN_BACK') this.giveBack([pool])
  }

  /** In the order of asking. A refusal is also that of others who asked for as much; who is left is charged one by one. */
  #serve(pool: Pool, result: LeaseResult, now: number, askedFor: number | undefined): void {
    const { queue } = pool
    pool.queue = []
    pool.queued = 0
    let place = 0
    for (let next = queue[0]; next !== undefined && spend(pool, next.permits); next = queue[++place])
      next.resolve(pooledResult(pool, now))
    if (place === queue.length) return
    const refusal = { granted: false, now: result.now, bands: withMore(result.bands, pool.left) }
    for (const { demands, permits, resolve } of queue.slice(place))
      resolve(!result.granted && permits === askedFor ? refusal : this.#store.charge(demands, false))
  }

  #failed(pool: Pool, error: unknown): void {
    const { queue } = pool
    pool.asked = 0
    pool.queue = []
    pool.queued = 0
    pool.quietUntil = this.#clock.now() + idleMs
    for (const { reject } of queue) reject(error)
  }

  #sweep(): void {
    const now = this.#clock.now()
    const settlements: Settlement[] = []
    for (const pool of this.pools) {
      const unusedMs = now - pool.usedAt
      const soon = now + sweepMs + leadMs
      if (unusedMs >= idleMs && pool.asked === 0) giveBack(pool, settlements)
      else if (!isFresh(pool, soon)) giveBack(pool, settlements, soon)
      if (unusedMs >= dropMs && pool.asked === 0 && pool.taken === 0) this.pools.delete(pool)
    }
    this.tell(settlements)
    this.#cancelSweep = undefined
    if (this.pools.size > 0) this.#armSweep()
  }

  /** One timer for all pools, which keeps no process alive. */
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
        this.#underWay.delete(done)
      })
    this.#underWay.add(done)
  }
}

/** Until the store would grant again, as far as it knows. */
function quietMs({ bands }: LeaseResult): number {
  let longest = 0
  for (const { retryAfter } of bands) longest = Math.max(longest, retryAfter / ticksPerMs)
  return Math.min(longest, longestQuietMs)
}
