import type { Step } from '../core/algorithm.js'

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
