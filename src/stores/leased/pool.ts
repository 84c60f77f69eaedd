/**
 * What this process holds of one bucket: permits that were paid for in advance, in lots that end together. Plain data and
 * the arithmetic on it; who asks for more, and when, is decided in `leased-pools` and `leased`.
 *
 * Instants are milliseconds of the clock here, unless they are said to be the store's ticks.
 */
import type { BandResult, BucketGroup, Charge, ChargeResult, LeaseResult, Settlement } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'

export interface Lot {
  /** The store's tick at which it ends. */
  readonly ending: number
  /** Permits may be spent before this, which is no later than the store ends the lease. */
  endsAt: number
  left: number
  /** Taken by decisions that are still being made elsewhere; spent, or put back, when they are. */
  taken: number
  /** Spent, which the store does not know yet. */
  spent: number
}

/** A caller that waits for a lease. */
export interface Waiter {
  readonly demands: readonly Charge[]
  readonly permits: number
  readonly resolve: (result: ChargeResult | Promise<ChargeResult>) => void
  readonly reject: (error: unknown) => void
}

export interface Pool {
  readonly group: BucketGroup
  readonly key: string
  /** The most permits that may be held at once. */
  readonly most: number
  /** In the order in which they end. */
  lots: Lot[]
  /** In all lots. */
  left: number
  taken: number
  /** What the store said last: at which of its ticks, when that was heard here, and the bands. */
  saidAt: number
  heardAt: number
  said: readonly BandResult[]
  /** When somebody asked last. */
  usedAt: number
  /** Permits asked for since `countedFrom`: what the size of the next batch is made of. */
  demand: number
  countedFrom: number
  /** The size of the last batch. */
  batch: number
  /** Permits that a lease under way may bring; 0 if there is none. */
  asked: number
  /** The store has refused, or failed: until then nothing is asked for in advance. */
  quietUntil: number
  /** Callers that wait for the lease under way, in the order of asking, and what they need together. */
  queue: Waiter[]
  queued: number
  /** GIVEN_BACK: what is left, or still comes, goes back to the store. FORGOTTEN: it is worth nothing any more. */
  state: 'OPEN' | 'GIVEN_BACK' | 'FORGOTTEN'
}

export const newPool = (group: BucketGroup, key: string, most: number): Pool => ({
  group,
  key,
  most,
  lots: [],
  left: 0,
  taken: 0,
  saidAt: 0,
  heardAt: 0,
  said: [],
  usedAt: 0,
  demand: 0,
  countedFrom: Number.NEGATIVE_INFINITY,
  batch: 0,
  asked: 0,
  quietUntil: Number.NEGATIVE_INFINITY,
  queue: [],
  queued: 0,
  state: 'OPEN',
})

/** Clocks may differ in rate by this part at most: twice what they are corrected by while they are being set right. */
const clockError = 0.002

/** Adds what a lease has brought that was asked for at `askedAt`. */
export function addLease(pool: Pool, { now, lease }: LeaseResult, askedAt: number): void {
  if (lease === undefined) return
  const { permits, ending } = lease
  // The store counted from a moment after the question, so that its lease ends later than this.
  const endsAt = askedAt + ((ending - now) / ticksPerMs) * (1 - clockError)
  const lot = pool.lots.find((other) => other.ending === ending)
  if (lot === undefined) {
    pool.lots.push({ ending, endsAt, left: permits, taken: 0, spent: 0 })
    pool.lots.sort((a, b) => a.ending - b.ending)
  } else {
    lot.left += permits
    // If the store's time was changed meanwhile, the last answer knows it.
    lot.endsAt = endsAt
  }
  pool.left += permits
}

/** Whether every lot may be spent from. A clock that has stepped back cannot say, so then none may. */
export const isFresh = ({ lots, heardAt }: Pool, now: number): boolean =>
  lots.length === 0 || (now < (lots[0] as Lot).endsAt && now >= heardAt)

/** Spends permits if there are enough, from what ends first. The lots must be fresh. */
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

/** Takes permits of one lot, for a decision that is not made yet. The lots must be fresh. */
export function take(pool: Pool, permits: number): Lot | undefined {
  const lot = pool.lots.find(({ left }) => left >= permits)
  if (lot === undefined) return undefined
  lot.left -= permits
  lot.taken += permits
  pool.left -= permits
  pool.taken += permits
  return lot
}

/** Ends a `take`: the permits were spent, or are there again; or go back to the store if their lot is here no longer. */
export function endTake(pool: Pool, lot: Lot, permits: number, wasGranted: boolean, settlements: Settlement[]): void {
  lot.taken -= permits
  pool.taken -= permits
  if (!pool.lots.includes(lot)) {
    const { group, key } = pool
    if (pool.state !== 'FORGOTTEN')
      settlements.push({ group, key, permits: wasGranted ? permits : -permits, ending: lot.ending })
  } else if (wasGranted) lot.spent += permits
  else {
    lot.left += permits
    pool.left += permits
  }
}

/** Lets go of lots, all of them or those that end no later than `endingBy`; the store is to know what becomes of them. */
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

/** Tells what was spent, so that the store has room for it again. */
export function settleSpent({ group, key, lots }: Pool, settlements: Settlement[]): void {
  for (const lot of lots) {
    if (lot.spent > 0) settlements.push({ group, key, permits: lot.spent, ending: lot.ending })
    lot.spent = 0
  }
}

/** Lets go of everything, and of what still comes, for nothing. */
export function forget(pool: Pool): void {
  pool.state = 'FORGOTTEN'
  pool.lots = []
  pool.left = 0
}

/**
 * What a decision from the pool says: what the store had left, with what is left here. Its time is that of the last answer
 * and what has passed since then, which is never ahead of the store's own.
 */
export function pooledResult(pool: Pool, now: number): ChargeResult {
  const storeNow = pool.saidAt + Math.floor((now - pool.heardAt) * ticksPerMs)
  const { said } = pool
  if (said.length === 1)
    return { granted: true, now: storeNow, bands: [pooledBand(pool, said[0] as BandResult, storeNow)], fromCache: true }
  return { granted: true, now: storeNow, bands: said.map((band) => pooledBand(pool, band, storeNow)), fromCache: true }
}

const pooledBand = ({ left }: Pool, { remaining, resetAt }: BandResult, storeNow: number): BandResult => ({
  allowed: true,
  delay: 0,
  retryAfter: 0,
  remaining: remaining + left,
  resetAt: resetAt > storeNow ? resetAt : storeNow,
})

/** What the bands said, with `more` permits that they do not know of. */
export const withMore = (bands: readonly BandResult[], more: number): readonly BandResult[] =>
  more === 0 ? bands : bands.map((band) => ({ ...band, remaining: band.remaining + more }))
