/**
 * Token bucket with `refill: INTERVAL`: `refillTokens` arrive at once at the end of each window. The first interval
 * starts at first use, and again at the first use after the bucket was full, so that full means the same as absent.
 *
 * State: [whole, intervalStart].
 */
import type { Band } from '../core/rule.js'
import { answer } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'

export const intervalBucket: CellAlgorithm = {
  step(cells, start, band, permits, now, patience, out) {
    const { whole, since } = levelAt(cells, start, band, now)
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, since, permits, band, now)
    const charged = answer(out, wait, permits, patience)
    const left = charged ? whole - permits : whole
    out.remaining = left > 0 ? left : 0
    out.resetAt = now + ticksUntil(left, since, band.capacity, band, now)
    out.changes = charged || (start >= 0 && now < (cells[start + 1] as number))
    put(out.next, left, since, 0, 0)
  },

  /** A place in the middle of the line stays empty: filling it would let too many in with those behind. */
  refund(cells, start, band, permits, now, grantedAt, next) {
    const { whole, since } = levelAt(cells, start, band, now)
    put(next, Math.min(band.capacity, whole + permits), since, 0, 0)
    return grantedAt <= now || now + ticksUntil(whole, since, 0, band, now) <= grantedAt
  },

  expiresAt(cells, start, band) {
    const since = cells[start + 1] as number
    return since + ticksUntil(cells[start] as number, since, band.capacity, band, since)
  },
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
