/**
 * The leased permits that this process holds of one bucket, in lots that end together: plain data and arithmetic. `lender` and
 * `leased` decide when to lease more.
 *
 * Times are milliseconds of the local clock, unless they are ticks of the store.
 */
import type { BandResult, BucketGroup, Charge, ChargeResult, LeaseResult, Settlement } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'
import type { LeaseTerms } from './pools.js'

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
interface Waiter {
  readonly charges: readonly Charge[]
  readonly permits: number
  readonly resolve: (result: ChargeResult | Promise<ChargeResult>) => void
  readonly reject: (error: unknown) => void
}

export interface Pool {
  readonly group: BucketGroup
  readonly key: string
  readonly terms: LeaseTerms
  /** Sorted by their end. */
  lots: Lot[]
  /** Totals of all lots. */
  left: number
  taken: number
  /** The last reply of the store: its tick, the local time of its arrival, and the results of the bands. */
  storeTick: number
  repliedAt: number
  results: readonly BandResult[]
  /** The result of the last decision from the pool, which the next one overwrites. */
  held: HeldResult
  /** The time of the last request. */
  usedAt: number
  /** Requests since `countedFrom`, and their permits. They determine the size of the next batch. */
  requests: number
  demand: number
  countedFrom: number
  /** The size of the last batch; 0 before the first. */
  batch: number
  /** The next batch is leased at once when fewer permits than this are left, and otherwise with those of other keys. */
  urgentBelow: number
  /** True if the store had fewer permits than were wanted, or failed. There is no further batch: other processes may need the rest. */
  isLast: boolean
  /** Permits requested by the lease in flight; 0 without one. */
  requested: number
  /** Decisions that wait for the lease in flight, in order of arrival, and the sum of their permits. */
  queue: Waiter[]
  queued: number
  /** CLOSED: permits that are left or arrive later are returned to the store. DISCARDED: they are void, because the bucket was reset. */
  state: 'OPEN' | 'CLOSED' | 'DISCARDED'
}

type Mutable<T> = { -readonly [member in keyof T]: T[member] }

export interface HeldResult extends ChargeResult {
  now: number
  readonly bands: readonly Mutable<BandResult>[]
}

export const newPool = (group: BucketGroup, key: string, terms: LeaseTerms): Pool => ({
  group,
  key,
  terms,
  lots: [],
  left: 0,
  taken: 0,
  storeTick: 0,
  repliedAt: 0,
  results: [],
  held: newHeldResult(group.bands.length),
  usedAt: 0,
  requests: 0,
  demand: 0,
  countedFrom: 0,
  batch: 0,
  urgentBelow: 0,
  isLast: false,
  requested: 0,
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

/** Removes lots whose windows have ended. Nothing is returned, because their permits count in no later window. */
export function dropEndedWindows(pool: Pool, now: number): void {
  if (isFresh(pool, now)) return
  for (const { endsAt, left } of pool.lots) if (endsAt <= now) pool.left -= left
  pool.lots = pool.lots.filter(({ endsAt }) => endsAt > now)
}

/** Settles spent permits, so that they no longer count as leased. */
export function settleSpent({ group, key, terms, lots }: Pool, settlements: Settlement[]): void {
  for (const lot of lots) {
    if (lot.spent > 0 && !terms.areWindows) settlements.push({ group, key, permits: lot.spent, ending: lot.ending })
    lot.spent = 0
  }
}

/** Discards all permits, and those that arrive later, without returning them. */
export function discard(pool: Pool): void {
  pool.state = 'DISCARDED'
  pool.lots = []
  pool.left = 0
}

const newHeldResult = (bands: number): HeldResult => ({
  granted: true,
  now: 0,
  bands: Array.from({ length: bands }, () => ({ allowed: true, delay: 0, retryAfter: 0, remaining: 0, resetAt: 0 })),
  fromCache: true,
})

/**
 * The result of a decision from the pool, valid until the next one. `remaining` is that of the store's last reply plus the
 * permits that are left here. Its time is derived from that reply and is never ahead of the store's clock.
 */
export function heldResult({ storeTick, repliedAt, results, left, held }: Pool, now: number): ChargeResult {
  const storeNow = storeTick + Math.floor((now - repliedAt) * ticksPerMs)
  held.now = storeNow
  for (let i = 0; i < results.length; i++) {
    const { remaining, resetAt } = results[i] as BandResult
    const band = held.bands[i] as Mutable<BandResult>
    band.remaining = remaining + left
    band.resetAt = resetAt > storeNow ? resetAt : storeNow
  }
  return held
}

/** Copies a result that the next decision would overwrite. */
export const copyOf = (result: ChargeResult): ChargeResult => ({
  ...result,
  bands: result.bands.map((band) => ({ ...band })),
})

/** Like `heldResult`, but the result stays valid after the next call. */
export const pooledResult = (pool: Pool, now: number): ChargeResult => copyOf(heldResult(pool, now))

/** Adds permits that the store does not know of to the results. */
export const addRemaining = (bands: readonly BandResult[], more: number): readonly BandResult[] =>
  more === 0 ? bands : bands.map((band) => ({ ...band, remaining: band.remaining + more }))
