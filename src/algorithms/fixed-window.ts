/**
 * Fixed window: at most `capacity` in each window; windows are multiples of windowTicks since the epoch.
 *
 * State: [windowStart, count, at]. Callers that wait are counted in the window they will be let into, so windowStart may
 * lie ahead; windows before it are closed, which keeps first come, first served.
 */
import type { Algorithm, Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { type CellState, Cells } from './cells.js'
import { aheadOfTime, windowOf } from './window.js'

export const fixedWindow: Algorithm<CellState> = {
  createBuckets: () => new Cells(),

  step(state, band, permits, now, patience): Step<CellState> {
    const open = windowAt(state, band, now)
    const fits = open.count + permits <= band.capacity
    const start = fits || permits === 0 ? open.start : open.start + band.windowTicks
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : Math.max(0, start - now)
    const allowed = permits === 0 || wait <= patience
    const charged = allowed && permits > 0
    const after = charged ? { start, count: (fits ? open.count : 0) + permits } : open
    const steppedBack = state !== undefined && now < (state[2] as number)
    return {
      allowed,
      delay: charged ? wait : 0,
      retryAfter: allowed ? 0 : wait - patience,
      remaining: after.start > now ? 0 : Math.max(0, band.capacity - after.count),
      resetAt: after.start + band.windowTicks,
      change: charged || steppedBack ? [after.start, after.count, now, 0] : undefined,
    }
  },

  /** Permits of a window that is over are gone; giving them to another window would let too many into that one. */
  refund(state, band, permits, now, grantedAt) {
    const { start, count } = windowAt(state, band, now)
    if (windowOf(grantedAt, band) !== start) return undefined
    return [start, Math.max(0, count - permits), now, 0]
  },

  expiresAt(state, band) {
    return windowOf(state[0] as number, band) + band.windowTicks
  },
}

function windowAt(state: CellState | undefined, band: Band, now: number): { start: number; count: number } {
  const current = windowOf(now, band)
  if (state === undefined) return { start: current, count: 0 }
  const start = aheadOfTime(state[0] as number, state[2] as number, now, band)
  return start < current ? { start: current, count: 0 } : { start, count: state[1] as number }
}
