import type { Band } from './rule.js'

/**
 * What a band says to a request. Times are ticks: whole microseconds. A step is filled in by whoever is asked and reused
 * by whoever asks, so that a decision makes no garbage; copy what must last.
 */
export interface Step {
  allowed: boolean
  /** Ticks until a granted request may go on; may have a fraction. 0 at once, and 0 when refused. */
  delay: number
  /** Ticks until the same request would be granted; Infinity for never, 0 when granted. */
  retryAfter: number
  /** Whole permits left; after the charge when granted. */
  remaining: number
  /** The tick at which the bucket is full, or its window ends; after the charge when granted. */
  resetAt: number
  /**
   * Whether `next` is to be written when the whole decision is granted. A refused step asks for a write only if time has
   * stepped back: the bucket is then moved, unchanged, to the new time, so that it blocks no longer than its own window.
   */
  changes: boolean
  /** What would be written; only the algorithm knows what it means. */
  readonly next: Float64Array
  /** When `take` is asked. An argument would be put into memory of its own with every call. */
  now: number
  /** After a `take`: ticks since the bucket was written before. */
  elapsed: number
}

/** The most numbers that an algorithm writes at once. */
const mostNumbers = 5

/** Not-a-number makes the engine keep these fields as plain numbers, which are then changed in place. */
const unset = Number.NaN

export const newStep = (): Step => ({
  allowed: false,
  delay: unset,
  retryAfter: unset,
  remaining: unset,
  resetAt: unset,
  changes: false,
  next: new Float64Array(mostNumbers),
  now: unset,
  elapsed: unset,
})

/**
 * The buckets of one band, each in a numbered slot, and the algorithm that counts in them. A slot below 0, or one that was
 * never written, is a bucket that nobody has used. An algorithm never touches a store, and a store never knows one by name.
 */
export interface Buckets {
  /**
   * What happens to a request for `permits` at `now`; writes nothing but `out`. 0 permits looks without asking. `patience`
   * is how many ticks the caller is willing to be delayed for a refill; 0 refuses instead.
   */
  step(slot: number, band: Band, permits: number, now: number, patience: number, out: Step): void
  /**
   * Optional: step and write in one go at `out.now`, for the case that is the most frequent by far: granted at once. Fills
   * in `remaining`, `resetAt` and `elapsed` alone. False if it is any other case; then nothing was written, and a step will
   * tell.
   */
  take?(slot: number, band: Band, permits: number, out: Step): boolean
  /** Undoes the `take` of which `out` tells, if it was the last thing that happened to the bucket. */
  untake?(slot: number, band: Band, permits: number, out: Step): void
  /** Makes what a step proposed the bucket's state. */
  write(slot: number, next: Float64Array): void
  /** Takes back permits that were granted for the instant `grantedAt`; never above capacity. */
  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void
  /** The instant from which the bucket means the same as an unused one. */
  expiresAt(slot: number, band: Band): number
  clear(slot: number): void
}
