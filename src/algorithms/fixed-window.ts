/**
 * Fixed window: at most `capacity` permits in each window. Windows are multiples of windowTicks since the epoch, or
 * periods of a calendar.
 *
 * State: [windowStart, count, at, before]. A request that waits is counted in the window in which it is released, so
 * windowStart can be in the future. Earlier windows are then closed, which keeps the order of arrival. `before` is the count of
 * the window that was closed last, or -1 if unknown. That window reopens if all requests that wait for the next one leave.
 */
import type { Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { answer, forcedPermits } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { calendarWindows, fixedWindows, type Windows, windowOf } from './window.js'

/** Creates the algorithm for one kind of windows. */
function windowAlgorithm(windows: Windows): CellAlgorithm {
  /** True if the state is of the open window. */
  const isCurrent = (cells: Float64Array, start: number, open: number, now: number, band: Band): boolean =>
    now < (cells[start + 2] as number) || windows.of(cells[start] as number, band) >= open

  /** The count of the open window, or 0 if the state is of a past window. */
  const countIn = (cells: Float64Array, start: number, open: number, now: number, band: Band): number =>
    start >= 0 && isCurrent(cells, start, open, now, band) ? (cells[start + 1] as number) : 0

  /** The count of the window before the open one, or `unknown` if the state is of a past window. */
  const beforeOf = (cells: Float64Array, start: number, open: number, now: number, band: Band): number =>
    start >= 0 && isCurrent(cells, start, open, now, band) ? (cells[start + 3] as number) : unknown

  return {
    stamp: 2,

    step(cells, start, band, permits, now, maxWaitTicks, out) {
      const open = start < 0 ? windows.of(now, band) : windows.at(cells, start, 2, now, band)
      const count = countIn(cells, start, open, now, band)
      const fits = count + permits <= band.capacity
      const granted = fits || permits === 0 ? open : windows.after(open, band)
      const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : Math.max(0, granted - now)
      const charged = answer(out, wait, permits, maxWaitTicks)
      const window = charged ? granted : open
      const after = charged ? (fits ? count : 0) + permits : count
      const before = window > open ? count : beforeOf(cells, start, open, now, band)
      out.remaining = window > now ? 0 : Math.max(0, band.capacity - after)
      out.resetAt = windows.after(window, band)
      out.changes = charged || (start >= 0 && now < (cells[start + 2] as number))
      put(out.next, window, after, now, before)
    },

    /** Permits of a past window are not refunded, because another window would then grant more than its capacity. */
    refund(cells, start, band, permits, now, grantedAt, next) {
      const open = windows.at(cells, start, 2, now, band)
      const count = Math.max(0, countIn(cells, start, open, now, band) - permits)
      const before = beforeOf(cells, start, open, now, band)
      const reopens = count === 0 && before >= 0 && open > windows.of(now, band)
      if (reopens) put(next, windows.before(open, band), before, now, unknown)
      else put(next, open, count, now, before)
      return windows.of(grantedAt, band) === open
    },

    /** Debt ends with its window, like every count. */
    force(cells, start, band, permits, now, next) {
      const open = start < 0 ? windows.of(now, band) : windows.at(cells, start, 2, now, band)
      const count = countIn(cells, start, open, now, band)
      const taken = forcedPermits(band, permits, band.capacity - count)
      put(next, open, count + taken, now, beforeOf(cells, start, open, now, band))
    },

    expiresAt(cells, start, band) {
      const window = windows.of(cells[start] as number, band)
      return cells[start + 1] === 0 ? window : windows.after(window, band)
    },
  }
}

const unknown = -1

/** Fast path of nearly all granted requests: the bucket is of the current window, and nothing waits for the next one. */
function take(cells: Float64Array, start: number, band: Band, permits: number, now: number, out: Step): boolean {
  const { capacity, windowTicks } = band
  const window = cells[start] as number
  const countBefore = cells[start + 1] as number
  const at = cells[start + 2] as number
  const count = countBefore + permits
  // The window of an unused bucket is NaN, which equals no window.
  if (now < at || count > capacity || window !== windowOf(now, band)) return false
  put(out.next, window, countBefore, at, cells[start + 3] as number)
  cells[start + 1] = count
  cells[start + 2] = now
  out.allowed = true
  out.delay = 0
  out.retryAfter = 0
  out.remaining = capacity - count
  out.resetAt = window + windowTicks
  out.changes = true
  return true
}

export const fixedWindow: CellAlgorithm = { ...windowAlgorithm(fixedWindows), take }
export const calendarWindow = windowAlgorithm(calendarWindows)
