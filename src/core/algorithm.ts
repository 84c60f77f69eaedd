import type { Band } from './rule.js'

/**
 * One way of counting, as pure functions of (state, band, permits, now). An algorithm never touches a store and a
 * store never knows an algorithm by name. All times are ticks: whole microseconds.
 *
 * `undefined` as a state means a bucket nobody has used. `Change` is what a step wants written; for most algorithms
 * it is simply the next state.
 */
export interface Algorithm<State, Change = State> {
  /** Where many buckets of this algorithm live compactly in memory. */
  createBuckets(): Buckets<State, Change>
  /**
   * What happens to a request for `permits` at `now`. 0 permits looks without asking. `patience` is how many ticks the
   * caller is willing to be delayed for a refill; 0 refuses instead.
   */
  step(state: State | undefined, band: Band, permits: number, now: number, patience: number): Step<Change>
  /** Takes back permits that were granted for the instant `grantedAt`; never above capacity. */
  refund(state: State, band: Band, permits: number, now: number, grantedAt: number): Change | undefined
  /** The instant from which this state means the same as no state. */
  expiresAt(state: State, band: Band): number
}

export interface Step<Change> {
  readonly allowed: boolean
  /** Ticks until a granted request may go on; may have a fraction. 0 at once, and 0 when refused. */
  readonly delay: number
  /** Ticks until the same request would be granted; Infinity for never, 0 when granted. */
  readonly retryAfter: number
  /** Whole permits left; after the charge when granted. */
  readonly remaining: number
  /** The tick at which the bucket is full, or its window ends; after the charge when granted. */
  readonly resetAt: number
  /**
   * To be written when the whole decision is granted. A refused step asks for a write only if time has stepped back:
   * the bucket is then moved, unchanged, to the new time, so that it blocks no longer than its own window.
   */
  readonly change: Change | undefined
}

/** Numbered places for many buckets. */
export interface Buckets<State, Change> {
  read(slot: number): State | undefined
  write(slot: number, change: Change): void
  clear(slot: number): void
}
