/**
 * Sliding window counter: the previous window's count, weighted by the part of it still inside, plus the current count.
 *
 * State: [windowStart, previous, current, at]. previous × part is rounded up: capacity minus current minus permits is a
 * whole number, so comparing with the rounded value decides exactly as the real one would. A caller that waits is counted
 * in the window it will be let into, which may lie ahead.
 */
import type { Algorithm, Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { type CellState, Cells } from './cells.js'
import { mulDiv, mulDivUp } from './exact.js'
import { aheadOfTime, windowOf } from './window.js'

interface Counts {
  readonly start: number
  readonly previous: number
  readonly current: number
}

export const slidingWindowCounter: Algorithm<CellState> = {
  createBuckets: () => new Cells(),

  step(state, band, permits, now, patience): Step<CellState> {
    const counts = countsAt(state, band, now)
    const grant = permits > 0 && permits <= band.capacity ? earliest(counts, band, permits, now) : { at: now, counts }
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : grant.at - now
    const allowed = permits === 0 || wait <= patience
    const after = allowed ? grant.counts : counts
    const steppedBack = state !== undefined && now < (state[3] as number)
    return {
      allowed,
      delay: allowed ? wait : 0,
      retryAfter: allowed ? 0 : wait - patience,
      remaining: after.start > now ? 0 : Math.max(0, band.capacity - used(after, band, now)),
      resetAt: after.start + band.windowTicks,
      change: after !== counts || steppedBack ? written(after, now) : undefined,
    }
  },

  refund(state, band, permits, now, grantedAt) {
    const { start, previous, current } = countsAt(state, band, now)
    const window = windowOf(grantedAt, band)
    if (window === start) return written({ start, previous, current: Math.max(0, current - permits) }, now)
    if (window !== start - band.windowTicks) return undefined
    return written({ start, previous: Math.max(0, previous - permits), current }, now)
  },

  expiresAt(state, band) {
    const windows = (state[2] as number) > 0 ? 2 : (state[1] as number) > 0 ? 1 : 0
    return windowOf(state[0] as number, band) + windows * band.windowTicks
  },
}

/** The first instant at which the permits fit, and the counts once they are taken. */
function earliest(counts: Counts, band: Band, permits: number, now: number): { at: number; counts: Counts } {
  const window = band.windowTicks
  const { start, previous, current } = counts
  const free = band.capacity - current - permits
  if (free >= 0) {
    const at = Math.max(now, start, start + fadeTicks(previous, free, window))
    if (at < start + window) return { at, counts: { start, previous, current: current + permits } }
  }
  const fade = fadeTicks(current, band.capacity - permits, window)
  const next = start + window
  if (fade < window) return { at: next + fade, counts: { start: next, previous: current, current: permits } }
  return { at: next + window, counts: { start: next + window, previous: 0, current: permits } }
}

/** How far into a window the one before it, holding `count`, weighs no more than `free`. */
const fadeTicks = (count: number, free: number, window: number): number =>
  count <= free ? 0 : window - mulDiv(free, window, count)

const used = ({ start, previous, current }: Counts, band: Band, now: number): number =>
  current + mulDivUp(band.windowTicks - (now - start), previous, band.windowTicks)

function countsAt(state: CellState | undefined, band: Band, now: number): Counts {
  const open = windowOf(now, band)
  if (state === undefined) return { start: open, previous: 0, current: 0 }
  const start = aheadOfTime(state[0] as number, state[3] as number, now, band)
  if (start >= open) return { start, previous: state[1] as number, current: state[2] as number }
  return { start: open, previous: start === open - band.windowTicks ? (state[2] as number) : 0, current: 0 }
}

const written = ({ start, previous, current }: Counts, now: number): number[] => [start, previous, current, now]
