/**
 * Token bucket with `refill: INTERVAL`: `refillTokens` arrive at once at the end of each window. The first interval
 * starts at first use, and again at the first use after the bucket was full, so that full means the same as absent.
 *
 * State: [whole, intervalStart].
 */
import type { Algorithm, Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { type CellState, Cells } from './cells.js'

export const intervalBucket: Algorithm<CellState> = {
  createBuckets: () => new Cells(),

  step(state, band, permits, now, patience): Step<CellState> {
    const { whole, start } = levelAt(state, band, now)
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, start, permits, band, now)
    const allowed = permits === 0 || wait <= patience
    const after = allowed ? whole - permits : whole
    const steppedBack = state !== undefined && now < (state[1] as number)
    return {
      allowed,
      delay: allowed && permits > 0 ? wait : 0,
      retryAfter: allowed ? 0 : wait - patience,
      remaining: Math.max(0, after),
      resetAt: now + ticksUntil(after, start, band.capacity, band, now),
      change: after !== whole || steppedBack ? [after, start, 0, 0] : undefined,
    }
  },

  refund(state, band, permits, now) {
    const { whole, start } = levelAt(state, band, now)
    return [Math.min(band.capacity, whole + permits), start, 0, 0]
  },

  expiresAt(state, band) {
    const start = state[1] as number
    return start + ticksUntil(state[0] as number, start, band.capacity, band, start)
  },
}

function levelAt(state: CellState | undefined, band: Band, now: number): { whole: number; start: number } {
  if (state === undefined) return { whole: band.capacity, start: now }
  const start = Math.min(state[1] as number, now)
  const turns = Math.floor((now - start) / band.windowTicks)
  const whole = (state[0] as number) + turns * band.refillTokens
  return whole >= band.capacity
    ? { whole: band.capacity, start: now }
    : { whole, start: start + turns * band.windowTicks }
}

function ticksUntil(whole: number, start: number, target: number, band: Band, now: number): number {
  if (target <= whole) return 0
  return start + Math.ceil((target - whole) / band.refillTokens) * band.windowTicks - now
}
