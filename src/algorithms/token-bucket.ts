/**
 * Token bucket: at most `capacity` permits, refilled continuously by `refillTokens` per window, and full at first.
 *
 * State: [whole, fraction, at, windowTicks], the level at the tick `at`, where `fraction` is in units of 1 / windowTicks.
 * Nothing is rounded, so frequent requests do not lose refill. Requests that wait have already taken their permits, which makes
 * the level negative.
 */
import type { Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { answer, forcedPermits } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { exactLimit } from './exact.js'
import { carriedFraction, refill, ticksUntil } from './level.js'

export const tokenBucket: CellAlgorithm = {
  stamp: 2,
  take,

  step(cells, start, band, permits, now, maxWaitTicks, out) {
    const { next } = out
    putLevel(next, cells, start, band, now)
    const whole = next[0] as number
    const fraction = next[1] as number
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, fraction, permits, band)
    const charged = answer(out, wait, permits, maxWaitTicks)
    const left = charged ? whole - permits : whole
    out.remaining = left > 0 ? left : 0
    out.resetAt = now + ticksUntil(left, fraction, band.capacity, band)
    out.changes = charged || (start >= 0 && now < (cells[start + 2] as number))
    put(next, left, fraction, now, band.windowTicks)
  },

  /** A slot in the middle of the queue is not refunded, because two requests would then be released where one was due. */
  refund(cells, start, band, permits, now, grantedAt, next) {
    putLevel(next, cells, start, band, now)
    const lastRelease = now + ticksUntil(next[0] as number, next[1] as number, 0, band)
    const whole = (next[0] as number) + permits
    const isFull = whole >= band.capacity
    put(next, isFull ? band.capacity : whole, isFull ? 0 : (next[1] as number), now, band.windowTicks)
    return grantedAt <= now || lastRelease <= grantedAt
  },

  force(cells, start, band, permits, now, next) {
    putLevel(next, cells, start, band, now)
    const whole = next[0] as number
    put(next, whole - forcedPermits(band, permits, whole), next[1] as number, now, band.windowTicks)
  },

  expiresAt(cells, start, band) {
    const fraction = carriedFraction(cells[start + 1] as number, cells[start + 3] as number, band)
    return (cells[start + 2] as number) + ticksUntil(cells[start] as number, fraction, band.capacity, band)
  },
}

/**
 * Fast path of nearly all granted requests: the bucket is in use, was written under the same window, has enough permits, and
 * all products are below 2⁵³. Otherwise returns false and writes nothing.
 */
function take(
  cells: Float64Array,
  start: number,
  { capacity, refillTokens, windowTicks }: Band,
  permits: number,
  now: number,
  out: Step,
): boolean {
  const wholeBefore = cells[start] as number
  const fractionBefore = cells[start + 1] as number
  const at = cells[start + 2] as number
  const elapsed = now - at
  let whole = wholeBefore
  let fraction = fractionBefore + elapsed * refillTokens
  if (elapsed < 0 || fraction >= exactLimit || cells[start + 3] !== windowTicks) return false
  if (fraction >= windowTicks) {
    const refilled = Math.floor(fraction / windowTicks)
    whole += refilled
    fraction -= refilled * windowTicks
  }
  if (whole >= capacity) {
    whole = capacity
    fraction = 0
  }
  const left = whole - permits
  const missing = (capacity - left) * windowTicks
  // The level of an unused bucket is NaN, for which every comparison is false.
  if (!(left >= 0 && missing < exactLimit)) return false
  put(out.next, wholeBefore, fractionBefore, at, windowTicks)
  cells[start] = left
  cells[start + 1] = fraction
  cells[start + 2] = now
  out.allowed = true
  out.delay = 0
  out.retryAfter = 0
  out.remaining = left
  out.resetAt = now + Math.ceil((missing - fraction) / refillTokens)
  out.changes = true
  return true
}

/** Writes the current level, under a band that may have changed since the last write. */
function putLevel(next: Float64Array, cells: Float64Array, start: number, band: Band, now: number): void {
  if (start < 0) {
    next[0] = band.capacity
    next[1] = 0
    return
  }
  const fraction = carriedFraction(cells[start + 1] as number, cells[start + 3] as number, band)
  const elapsed = now - (cells[start + 2] as number)
  refill(next, cells[start] as number, fraction, band, elapsed > 0 ? elapsed : 0)
}
