import type { Band } from '../../core/rule.js'

/**
 * What an algorithm must do, in arbitrary precision and in the most obvious way: no cleverness, no bound on memory.
 * The engine and every store are compared with these, decision by decision, field by field. Times are ticks.
 */
export interface Model {
  /** What the bucket would say; changes nothing. */
  ask(band: Band, permits: bigint, now: bigint, patience: bigint): Answer
  /** Takes the permits for the instant that `ask` gave. */
  charge(band: Band, permits: bigint, now: bigint, grantedAt: bigint): void
  refund(band: Band, permits: bigint, now: bigint, grantedAt: bigint): void
  /** Called before anything else whenever the bucket is touched. */
  touch(band: Band, now: bigint): void
  remaining(band: Band, now: bigint): bigint
  resetAt(band: Band, now: bigint): bigint
  /** Whether the bucket now means the same as one that was never used. */
  isSpent(band: Band, now: bigint): boolean
  copy(): Model
}

export interface Answer {
  readonly allowed: boolean
  /** The tick from which the permits may be used, rounded up to a whole one. */
  readonly grantedAt: bigint
  /** The same as a delay that may have a fraction. */
  readonly delay: number
  /** Ticks until the same question would be answered with yes; undefined for never. */
  readonly retryAfter: bigint | undefined
}

/** Answers from the first instant at which the permits can be had by waiting. */
export function answerAt(instant: bigint | undefined, now: bigint, patience: bigint): Answer {
  if (instant === undefined) return { allowed: false, grantedAt: now, delay: 0, retryAfter: undefined }
  const wait = instant - now
  if (wait > patience) return { allowed: false, grantedAt: now, delay: 0, retryAfter: wait - patience }
  return { allowed: true, grantedAt: instant, delay: Number(wait), retryAfter: 0n }
}

export const divideUp = (a: bigint, b: bigint): bigint => (a <= 0n ? a / b : (a + b - 1n) / b)
export const divideDown = (a: bigint, b: bigint): bigint => (a >= 0n ? a / b : -((-a + b - 1n) / b))
export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)
export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)
export const sizes = (band: Band) => ({
  capacity: BigInt(band.capacity),
  refill: BigInt(band.refillTokens),
  window: BigInt(band.windowTicks),
})
