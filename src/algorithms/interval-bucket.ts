/**
 * Token bucket with `refill: INTERVAL`: all `refillTokens` are added at the end of each window. The first interval starts at
 * the first use, and again at the first use after the bucket was full, so that a full bucket is equivalent to an unused one.
 *
 * State: [whole, intervalStart, lastAt, lastPermits]. Several requests may wait for the same refill, and a request that leaves
 * refunds permits that could have been granted an interval earlier. The level alone therefore does not determine the release
 * time of the last waiting request. `lastAt` is this time, and `lastPermits` the permits that wait until then. A full bucket
 * has neither, because it can be evicted at any time without a change of meaning.
 */
import type { Band } from '../core/rule.js'
import { answer, forcedPermits } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'

export const intervalBucket: CellAlgorithm = {
  stamp: 1,

  step(cells, start, band, permits, now, maxWaitTicks, out) {
    const { whole, since } = levelAt(cells, start, band, now)
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, since, permits, band, now)
    const charged = answer(out, wait, permits, maxWaitTicks)
    const left = charged ? whole - permits : whole
    out.remaining = left > 0 ? left : 0
    out.resetAt = now + ticksUntil(left, since, band.capacity, band, now)
    out.changes = charged || (start >= 0 && now < (cells[start + 1] as number))
    const last = whole < band.capacity ? lastOf(cells, start, now) : noWaiter
    const { at, permits: waiting } =
      charged && wait > 0
        ? joined(last, { at: now + wait, permits }, now + ticksUntil(whole, since, 0, band, now))
        : last
    put(out.next, left, since, at, waiting)
  },

  /** A slot in the middle of the queue is not refunded, because too many requests would then be released with the later ones. */
  refund(cells, start, band, permits, now, grantedAt, next) {
    const { whole, since } = levelAt(cells, start, band, now)
    const last = lastOf(cells, start, now)
    const lastRelease = Math.max(last.at, now + ticksUntil(whole, since, 0, band, now))
    const isFull = whole + permits >= band.capacity
    const hasLeft = grantedAt === last.at && last.permits <= permits
    const { at, permits: waiting } =
      isFull || hasLeft ? noWaiter : grantedAt === last.at ? { at: last.at, permits: last.permits - permits } : last
    put(next, isFull ? band.capacity : whole + permits, since, at, waiting)
    return grantedAt <= now || lastRelease <= grantedAt
  },

  force(cells, start, band, permits, now, next) {
    const { whole, since } = levelAt(cells, start, band, now)
    const { at, permits: waiting } = whole < band.capacity ? lastOf(cells, start, now) : noWaiter
    put(next, whole - forcedPermits(band, permits, whole), since, at, waiting)
  },

  expiresAt(cells, start, band) {
    const since = cells[start + 1] as number
    return since + ticksUntil(cells[start] as number, since, band.capacity, band, since)
  },
}

/** The release time of the last waiting requests and the number of their permits. */
interface Last {
  readonly at: number
  readonly permits: number
}

const noWaiter: Last = { at: 0, permits: 0 }

function lastOf(cells: Float64Array, start: number, now: number): Last {
  if (start < 0 || (cells[start + 2] as number) <= now) return noWaiter
  return { at: cells[start + 2] as number, permits: cells[start + 3] as number }
}

/**
 * Adds a waiting request. `end` is the release time of the last request before it according to the level. If both times are
 * equal, it is unknown how many permits wait until then.
 */
function joined(last: Last, added: Last, end: number): Last {
  if (added.at === last.at) return { at: last.at, permits: last.permits + added.permits }
  if (end < last.at) return last
  return added.at === end ? { at: end, permits: Number.POSITIVE_INFINITY } : added
}

function levelAt(cells: Float64Array, start: number, band: Band, now: number): { whole: number; since: number } {
  if (start < 0) return { whole: band.capacity, since: now }
  const since = Math.min(cells[start + 1] as number, now)
  const windows = Math.floor((now - since) / band.windowTicks)
  const whole = (cells[start] as number) + windows * band.refillTokens
  return whole >= band.capacity
    ? { whole: band.capacity, since: now }
    : { whole, since: since + windows * band.windowTicks }
}

function ticksUntil(whole: number, since: number, target: number, band: Band, now: number): number {
  if (target <= whole) return 0
  return since + Math.ceil((target - whole) / band.refillTokens) * band.windowTicks - now
}
