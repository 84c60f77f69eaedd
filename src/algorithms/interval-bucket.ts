/**
 * Token bucket with `refill: INTERVAL`: `refillTokens` arrive at once at the end of each window. The first interval
 * starts at first use, and again at the first use after the bucket was full, so that full means the same as absent.
 *
 * State: [whole, intervalStart, lastAt, lastPermits]. Several may wait for the same instant, and whoever leaves gives back
 * permits that may have come an interval earlier. So the level alone does not say when the last of those who wait comes:
 * `lastAt` does, with the permits for which somebody waits until then. A full bucket owes nothing, so it has no `lastAt`: it
 * may be removed at any time, and must mean the same before and after.
 */
import type { Band } from '../core/rule.js'
import { answer } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'

export const intervalBucket: CellAlgorithm = {
  stamp: 1,

  step(cells, start, band, permits, now, patience, out) {
    const { whole, since } = levelAt(cells, start, band, now)
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, since, permits, band, now)
    const charged = answer(out, wait, permits, patience)
    const left = charged ? whole - permits : whole
    out.remaining = left > 0 ? left : 0
    out.resetAt = now + ticksUntil(left, since, band.capacity, band, now)
    out.changes = charged || (start >= 0 && now < (cells[start + 1] as number))
    const last = whole < band.capacity ? lastOf(cells, start, now) : nobody
    const { at, permits: waiting } =
      charged && wait > 0
        ? joined(last, { at: now + wait, permits }, now + ticksUntil(whole, since, 0, band, now))
        : last
    put(out.next, left, since, at, waiting)
  },

  /** A place in the middle of the line stays empty: filling it would let too many in with those behind. */
  refund(cells, start, band, permits, now, grantedAt, next) {
    const { whole, since } = levelAt(cells, start, band, now)
    const last = lastOf(cells, start, now)
    const lastInLine = Math.max(last.at, now + ticksUntil(whole, since, 0, band, now))
    const isFull = whole + permits >= band.capacity
    const isLeft = grantedAt === last.at && last.permits <= permits
    const { at, permits: waiting } =
      isFull || isLeft ? nobody : grantedAt === last.at ? { at: last.at, permits: last.permits - permits } : last
    put(next, isFull ? band.capacity : whole + permits, since, at, waiting)
    return grantedAt <= now || lastInLine <= grantedAt
  },

  expiresAt(cells, start, band) {
    const since = cells[start + 1] as number
    return since + ticksUntil(cells[start] as number, since, band.capacity, band, since)
  },
}

/** Until when somebody waits, and for how many permits. */
interface Last {
  readonly at: number
  readonly permits: number
}

const nobody: Last = { at: 0, permits: 0 }

function lastOf(cells: Float64Array, start: number, now: number): Last {
  if (start < 0 || (cells[start + 2] as number) <= now) return nobody
  return { at: cells[start + 2] as number, permits: cells[start + 3] as number }
}

/** `end` is when the line before the newcomer ends by the level: others may wait until then, or one that it says nothing of. */
function joined(last: Last, newcomer: Last, end: number): Last {
  if (newcomer.at === last.at) return { at: last.at, permits: last.permits + newcomer.permits }
  if (end < last.at) return last
  return newcomer.at === end ? { at: end, permits: Number.POSITIVE_INFINITY } : newcomer
}

function levelAt(cells: Float64Array, start: number, band: Band, now: number): { whole: number; since: number } {
  if (start < 0) return { whole: band.capacity, since: now }
  const since = Math.min(cells[start + 1] as number, now)
  const turns = Math.floor((now - since) / band.windowTicks)
  const whole = (cells[start] as number) + turns * band.refillTokens
  return whole >= band.capacity
    ? { whole: band.capacity, since: now }
    : { whole, since: since + turns * band.windowTicks }
}

function ticksUntil(whole: number, since: number, target: number, band: Band, now: number): number {
  if (target <= whole) return 0
  return since + Math.ceil((target - whole) / band.refillTokens) * band.windowTicks - now
}
