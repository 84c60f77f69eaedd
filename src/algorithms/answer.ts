import type { Step } from '../core/algorithm.js'

/**
 * Says what follows from the time until the permits can be had: at once, after a wait that the caller has patience for,
 * or not now. True if they are to be charged, which looking (0 permits) never does.
 */
export function answer(out: Step, wait: number, permits: number, patience: number): boolean {
  const allowed = permits === 0 || wait <= patience
  const charged = allowed && permits > 0
  out.allowed = allowed
  out.delay = charged ? wait : 0
  out.retryAfter = allowed ? 0 : wait - patience
  return charged
}
