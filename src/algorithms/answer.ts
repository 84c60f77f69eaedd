import type { Step } from '../core/algorithm.js'
import { algorithmTraits } from '../core/algorithm-traits.js'
import { type Band, maxFillTicks } from '../core/rule.js'

/**
 * Sets `allowed`, `delay` and `retryAfter` from the time until the permits are available: granted now, granted after a wait
 * of at most `maxWaitTicks`, or denied. Returns true if the permits are charged, which is never the case for 0 permits.
 */
export function answer(out: Step, wait: number, permits: number, maxWaitTicks: number): boolean {
  const allowed = permits === 0 || wait <= maxWaitTicks
  const charged = allowed && permits > 0
  out.allowed = allowed
  out.delay = charged ? wait : 0
  out.retryAfter = allowed ? 0 : wait - maxWaitTicks
  return charged
}

/**
 * The most permits that a forced charge may take below zero: one capacity. For a band that refills very slowly it is less, so
 * that the reset time stays exact.
 */
export function maxDebt(band: Band): number {
  const { capacity, refillTokens, windowTicks } = band
  if (!algorithmTraits[band.algorithm].isRefilled) return capacity
  return Math.min(capacity, Math.floor((maxFillTicks / windowTicks) * refillTokens) - capacity)
}

/** The permits that a forced charge takes from a bucket with `available` permits, which are negative in debt. */
export const forcedPermits = (band: Band, permits: number, available: number): number =>
  Math.min(permits, Math.max(0, available + maxDebt(band)))
