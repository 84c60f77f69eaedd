/**
 * The leased permits that this process holds of one bucket, in lots that end together: plain data and arithmetic. `lender` and
 * `leased` decide when to lease more.
 *
 * Times are milliseconds of the local clock, unless they are ticks of the store.
 */
import type { BandResult, BucketGroup, Charge, ChargeResult, LeaseResult, Settlement } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'

export interface Lot {
  /** The tick of the store at which the lease ends. */
  readonly ending: number
  /** Permits may be spent until this time, which is no later than the end of the lease in the store. */
  endsAt: number
  left: number
  /** Permits of pending decisions. When these end, they are spent or put back. */
  taken: number
  /** Spent permits that are not settled yet. */
  spent: number
}

/** A decision that waits for a lease. */
export interface Waiter {
  readonly charges: readonly Charge[]
  readonly permits: number
  readonly resolve: (result: ChargeResult | Promise<ChargeResult>) => void
  readonly reject: (error: unknown) => void
}

export interface Pool {
  readonly group: BucketGroup
  readonly key: string
  /** Maximum number of permits that may be held. */
  readonly maxPermits: number
  /** Sorted by their end. */
  lots: Lot[]
  /** Totals of all lots. */
  left: number
  taken: number
  /** The last reply of the store: its tick, the local time of its arrival, and the results of the bands. */
  storeTick: number
  repliedAt: number
  results: readonly BandResult[]
  /** The time of the last request. */
  usedAt: number
  /** Permits requested since `countedFrom`. Determines the size of the next batch. */
  demand: number
  countedFrom: number
  /** The size of the last batch. */
  batch: number
  /** Permits requested by the lease in flight; 0 without one. */
  requested: number
  /** After a rejection or failure of the store, nothing is leased ahead until this time. */
  pausedUntil: number
  /** Decisions that wait for the lease in flight, in order of arrival, and the sum of their permits. */
  queue: Waiter[]
  queued: number
  /** CLOSED: permits that are left or arrive later are returned to the store. DISCARDED: they are void, because the bucket was reset. */
  state: 'OPEN' | 'CLOSED' | 'DISCARDED'
}

export const newPool = (group: BucketGroup, key: string, maxPermits: number): Pool => ({
  group,
  key,
  maxPermits,
  lots: [],
  left: 0,
  taken: 0,
  storeTick: 0,
  repliedAt: 0,
  results: [],
  usedAt: 0,
  demand: 0,
  countedFrom: Number.NEGATIVE_INFINITY,
  batch: 0,
  requested: 0,
  pausedUntil: Number.NEGATIVE_INFINITY,
  queue: [],
  queued: 0,
  state: 'OPEN',
})

/** The maximum difference between the rates of two clocks: twice the rate at which NTP slews a clock. */
const clockError = 0.002

/** Adds the permits of a lease that was requested at `requestedAt`. */
export function addLease(pool: Pool, { now, lease }: LeaseResult, requestedAt: number): void {
  if (lease === undefined) return
  const { permits, ending } = lease
  // The store's lease started after the request was sent, so it ends later than this.
  const endsAt = requestedAt + ((ending - now) / ticksPerMs) * (1 - clockError)
  const lot = pool.lots.find((other) => other.ending === ending)
  if (lot === undefined) {
    pool.lots.push({ ending, endsAt, left: permits, taken: 0, spent: 0 })
    pool.lots.sort((a, b) => a.ending - b.ending)
  } else {
    lot.left += permits
    // If the store's clock was changed in between, the latest reply is right.
    lot.endsAt = endsAt
  }
  pool.left += permits
}

/** True if no lot has ended. If the clock has stepped back, this is unknown, and the result is false. */
export const isFresh = ({ lots, repliedAt }: Pool, now: number): boolean =>
  lots.length === 0 || (now < (lots[0] as Lot).endsAt && now >= repliedAt)

/** Spends permits if enough are left, from the lots that end first. The lots must be fresh. */
export function spend(pool: Pool, permits: number): boolean {
  if (pool.left < permits) return false
  const { lots } = pool
  let needed = permits
  for (let i = 0; needed > 0; i++) {
    const lot = lots[i] as Lot
    const part = needed < lot.left ? needed : lot.left
    lot.left -= part
    lot.spent += part
    needed -= part
  }
  pool.left -= permits
  return true
}

/** Takes permits of one lot for a pending decision. The lots must be fresh. */
export function take(pool: Pool, permits: number): Lot | undefined {
  const lot = pool.lots.find(({ left }) => left >= permits)
  if (lot === undefined) return undefined
  lot.left -= permits
  lot.taken += permits
  pool.left -= permits
  pool.taken += permits
  return lot
}

/** Ends a `take`: the permits are spent or put back. If their lot has been returned, they are settled with the store. */
export function endTake(pool: Pool, lot: Lot, permits: number, wasGranted: boolean, settlements: Settlement[]): void {
  lot.taken -= permits
  pool.taken -= permits
  if (!pool.lots.includes(lot)) {
    const { group, key } = pool
    if (pool.state !== 'DISCARDED')
      settlements.push({ group, key, permits: wasGranted ? permits : -permits, ending: lot.ending })
  } else if (wasGranted) lot.spent += permits
  else {
    lot.left += permits
    pool.left += permits
  }
}

/** Returns lots to the store: all of them, or those that end by `endingBy`. */
export function giveBack(pool: Pool, settlements: Settlement[], endingBy = Number.POSITIVE_INFINITY): void {
  const { group, key } = pool
  settleSpent(pool, settlements)
  for (const { ending, endsAt, left } of pool.lots) {
    if (endsAt > endingBy) continue
    if (left > 0) settlements.push({ group, key, permits: -left, ending })
    pool.left -= left
  }
  pool.lots = pool.lots.filter(({ endsAt }) => endsAt > endingBy)
}

/** Settles spent permits, so that they no longer count as leased. */
export function settleSpent({ group, key, lots }: Pool, settlements: Settlement[]): void {
  for (const lot of lots) {
    if (lot.spent > 0) settlements.push({ group, key, permits: lot.spent, ending: lot.ending })
    lot.spent = 0
  }
}

/** Discards all permits, and those that arrive later, without returning them. */
export function discard(pool: Pool): void {
  pool.state = 'DISCARDED'
  pool.lots = []
  pool.left = 0
}

/**
 * The result of a decision from the pool. `remaining` is that of the store's last reply plus the permits that are left here.
 * Its time is derived from that reply and is never ahead of the store's clock.
 */
export function pooledResult(pool: Pool, now: number): ChargeResult {
  const storeNow = pool.storeTick + Math.floor((now - pool.repliedAt) * ticksPerMs)
  const { results } = pool
  if (results.length === 1)
    return {
      granted: true,
      now: storeNow,
      bands: [pooledBand(pool, results[0] as BandResult, storeNow)],
      fromCache: true,
    }
  return {
    granted: true,
    now: storeNow,
    bands: results.map((band) => pooledBand(pool, band, storeNow)),
    fromCache: true,
  }
}

const pooledBand = ({ left }: Pool, { remaining, resetAt }: BandResult, storeNow: number): BandResult => ({
  allowed: true,
  delay: 0,
  retryAfter: 0,
  remaining: remaining + left,
  resetAt: resetAt > storeNow ? resetAt : storeNow,
})

/** Adds permits that the store does not know of to the results. */
export const addRemaining = (bands: readonly BandResult[], more: number): readonly BandResult[] =>
  more === 0 ? bands : bands.map((band) => ({ ...band, remaining: band.remaining + more }))
