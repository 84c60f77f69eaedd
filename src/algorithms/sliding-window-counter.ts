/**
 * Sliding window counter: the count of the previous window, weighted by the part of it that is still in the sliding window,
 * plus the current count.
 *
 * State: [windowStart, previous, current, at]. The weighted count is rounded up. This does not change the decision, because
 * capacity minus current minus permits is an integer. A request that waits is counted in the window in which it is released,
 * which can be in the future.
 */
import type { Band } from '../core/rule.js'
import { answer, forcedPermits } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { mulDiv, mulDivUp } from './exact.js'
import { windowAt, windowOf } from './window.js'

interface Counts {
  readonly window: number
  readonly previous: number
  readonly current: number
}

export const slidingWindowCounter: CellAlgorithm = {
  stamp: 3,

  step(cells, start, band, permits, now, maxWaitTicks, out) {
    const counts = countsAt(cells, start, band, now)
    const possible = permits > 0 && permits <= band.capacity
    const at = possible ? earliest(counts, band, permits, now) : now
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : at - now
    const charged = answer(out, wait, permits, maxWaitTicks)
    const { window, previous, current } = charged ? charge(counts, band, permits, at) : counts
    out.remaining = window > now ? 0 : Math.max(0, band.capacity - current - weight(window, previous, band, now))
    out.resetAt = window + band.windowTicks
    out.changes = charged || (start >= 0 && now < (cells[start + 3] as number))
    put(out.next, window, previous, current, now)
  },

  refund(cells, start, band, permits, now, grantedAt, next) {
    const { window, previous, current } = countsAt(cells, start, band, now)
    const granted = windowOf(grantedAt, band)
    const inPrevious = granted === window - band.windowTicks
    if (inPrevious) put(next, window, Math.max(0, previous - permits), current, now)
    else put(next, window, previous, Math.max(0, current - permits), now)
    return inPrevious || granted === window
  },

  force(cells, start, band, permits, now, next) {
    const { window, previous, current } = countsAt(cells, start, band, now)
    const counted = current + weight(window, previous, band, Math.max(now, window))
    put(next, window, previous, current + forcedPermits(band, permits, band.capacity - counted), now)
  },

  expiresAt(cells, start, band) {
    const windows = (cells[start + 2] as number) > 0 ? 2 : (cells[start + 1] as number) > 0 ? 1 : 0
    return windowOf(cells[start] as number, band) + windows * band.windowTicks
  },
}

/** The first tick at which the permits fit. */
function earliest({ window, previous, current }: Counts, band: Band, permits: number, now: number): number {
  const free = band.capacity - current - permits
  if (free >= 0) {
    const at = Math.max(now, window, window + fadeTicks(previous, free, band.windowTicks))
    if (at < window + band.windowTicks) return at
  }
  return window + band.windowTicks + fadeTicks(current, band.capacity - permits, band.windowTicks)
}

/** The counts after the permits are taken for the tick `at`, at most two windows ahead. */
function charge({ window, previous, current }: Counts, band: Band, permits: number, at: number): Counts {
  const next = window + band.windowTicks
  if (at < next) return { window, previous, current: current + permits }
  if (at < next + band.windowTicks) return { window: next, previous: current, current: permits }
  return { window: next + band.windowTicks, previous: 0, current: permits }
}

/** Ticks from the start of a window until the weight of the previous window, which has `count`, is at most `free`. */
const fadeTicks = (count: number, free: number, window: number): number =>
  count <= free ? 0 : window - mulDiv(free, window, count)

const weight = (window: number, previous: number, band: Band, now: number): number =>
  previous === 0 ? 0 : mulDivUp(band.windowTicks - (now - window), previous, band.windowTicks)

function countsAt(cells: Float64Array, start: number, band: Band, now: number): Counts {
  if (start < 0) return { window: windowOf(now, band), previous: 0, current: 0 }
  const window = windowAt(cells, start, 3, now, band)
  const written = windowOf(cells[start] as number, band)
  const writtenAt = cells[start + 3] as number
  if (now < writtenAt) {
    // At an earlier time, the weight of the previous window would be different. It keeps the weight that it had.
    const kept = weight(written, cells[start + 1] as number, band, Math.max(written, writtenAt))
    return { window, previous: 0, current: (cells[start + 2] as number) + kept }
  }
  if (written === window) return { window, previous: cells[start + 1] as number, current: cells[start + 2] as number }
  return { window, previous: written === window - band.windowTicks ? (cells[start + 2] as number) : 0, current: 0 }
}
