import type { HoldId } from './holds/hold-storage.js'
import type { Band } from './rule.js'

/**
 * The result of one band for one request. Times are in ticks (whole microseconds). The caller allocates the object and
 * reuses it for the next decision, so that a decision allocates nothing. Copy values that must outlive the call.
 */
export interface Step {
  allowed: boolean
  /** Ticks until a granted request may proceed; may have a fraction. 0 if there is no delay or the request is denied. */
  delay: number
  /** Ticks until the same request would be granted. Infinity for never, 0 if granted. */
  retryAfter: number
  /** Whole permits left, after the charge if granted. */
  remaining: number
  /** The tick at which the bucket is full or its window ends, after the charge if granted. */
  resetAt: number
  /**
   * True if `next` must be written when the whole decision is granted. A denied step requests a write only if the clock has
   * stepped back: the bucket then moves, unchanged, to the new time, so that it never blocks for longer than its own window.
   */
  changes: boolean
  /** The new state. Only the algorithm knows its layout. */
  readonly next: Float64Array
}

/** The largest state that an algorithm writes, in numbers. */
const maxStateLength = 5

/** NaN makes V8 store these fields as unboxed doubles, which are updated in place. */
const unset = Number.NaN

export const newStep = (): Step => ({
  allowed: false,
  delay: unset,
  retryAfter: unset,
  remaining: unset,
  resetAt: unset,
  changes: false,
  next: new Float64Array(maxStateLength),
})

/** The band of a bucket in the unit in which it is counted, and the buckets in this unit. */
export interface CountedAs {
  readonly buckets: Buckets
  readonly band: Band
  /** The number of units of a permit. */
  readonly perPermit: number
  /** The number of units of a full bucket of the rule. */
  readonly capacity: number
}

/**
 * The buckets of one band, each in a numbered slot, and the algorithm that updates them. A negative slot, or one that was
 * never written, is an unused bucket. Algorithms never access a store, and stores never depend on a specific algorithm.
 */
export interface Buckets {
  /**
   * Called before the buckets are used with another version of their band. `definition` is set if the used fraction is kept when
   * the definition changes: it is the band of the rule, from which the bands of a single call may differ.
   */
  bind?(band: Band, definition?: Band): void
  /** Converts a bucket that was written under another definition. Called before a request is decided, unless it is a peek. */
  rebase?(slot: number, band: Band, now: number): void
  /** How a bucket is counted, if not in permits of `band`. */
  countedAs?(slot: number, band: Band): CountedAs
  /**
   * Computes the result of a request for `permits` at `now`. Writes only to `out`. 0 permits reads the current state.
   * `maxWaitTicks` is the longest delay that the caller accepts for a refill; 0 denies the request instead.
   */
  step(slot: number, band: Band, permits: number, now: number, maxWaitTicks: number, out: Step): void
  /** Optional fast path for requests that are granted at once. Returns false, with `out` unchanged, if `step` must be called. */
  stepQuickly?(slot: number, band: Band, permits: number, now: number, out: Step): boolean
  /**
   * Optional: like `stepQuickly`, but stores the new state at once. `out.next` is then the state before, so that `write` undoes the
   * call.
   */
  take?(slot: number, band: Band, permits: number, now: number, out: Step): boolean
  /** Stores the state that a step has proposed. `hold` identifies the hold of an algorithm that takes holds. */
  write(slot: number, next: Float64Array, hold?: HoldId): void
  /** Refunds permits that were granted for the tick `grantedAt`, never above capacity. */
  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void
  /** Releases a hold. Returns false if there is no such hold, or if it has expired. Only of algorithms that take holds. */
  release?(slot: number, hold: HoldId, now: number): boolean
  /** Extends a hold by the window of the band. Returns false if there is no such hold, or if it has expired. */
  renew?(slot: number, band: Band, hold: HoldId, now: number): boolean
  /**
   * Takes permits in any case, and writes the state. A bucket without enough permits goes into debt, by at most its capacity;
   * what exceeds this is not taken. `step` reports the new state.
   */
  force(slot: number, band: Band, permits: number, now: number): void
  /** The tick from which the bucket is equivalent to an unused one. */
  expiresAt(slot: number, band: Band): number
  clear(slot: number): void
}
