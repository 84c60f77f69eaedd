/**
 * Fixed window: at most `capacity` in each window; windows are multiples of windowTicks since the epoch.
 *
 * State: [windowStart, count, at]. Callers that wait are counted in the window they will be let into, so windowStart may
 * lie ahead; windows before it are closed, which keeps first come, first served.
 */
import type { Band } from '../core/rule.js'
import { answer } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { windowAt, windowOf } from './window.js'

export const fixedWindow: CellAlgorithm = {
  step(cells, start, band, permits, now, patience, out) {
    const open = start < 0 ? windowOf(now, band) : windowAt(cells, start, 2, now, band)
    const count = countIn(cells, start, open, now, band)
    const fits = count + permits <= band.capacity
    const granted = fits || permits === 0 ? open : open + band.windowTicks
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : Math.max(0, granted - now)
    const charged = answer(out, wait, permits, patience)
    const window = charged ? granted : open
    const after = charged ? (fits ? count : 0) + permits : count
    out.remaining = window > now ? 0 : Math.max(0, band.capacity - after)
    out.resetAt = window + band.windowTicks
    out.changes = charged || (start >= 0 && now < (cells[start + 2] as number))
    put(out.next, window, after, now, 0)
  },

  /** Permits of a window that is over are gone; giving them to another window would let too many into that one. */
  refund(cells, start, band, permits, now, grantedAt, next) {
    const open = windowAt(cells, start, 2, now, band)
    put(next, open, Math.max(0, countIn(cells, start, open, now, band) - permits), now, 0)
    return windowOf(grantedAt, band) === open
  },

  expiresAt(cells, start, band) {
    return windowOf(cells[start] as number, band) + band.windowTicks
  },
}

/** What was counted in the open window: nothing, if the state is about one that is over. */
function countIn(cells: Float64Array, start: number, open: number, now: number, band: Band): number {
  if (start < 0) return 0
  const steppedBack = now < (cells[start + 2] as number)
  return steppedBack || windowOf(cells[start] as number, band) >= open ? (cells[start + 1] as number) : 0
}
