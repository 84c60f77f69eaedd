/**
 * Token bucket: `capacity` permits at most, refilled steadily at `refillTokens` per window, full at first.
 *
 * State: [whole, fraction, at, windowTicks], the level as it was at `at`; the window says what the fraction is a fraction
 * of. Nothing is rounded away, so two close requests lose nothing between them. Callers that wait have taken their permits
 * already: the level is then below zero.
 */
import type { Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { answer } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { exactLimit } from './exact.js'
import { carriedFraction, refill, ticksUntil } from './level.js'

export const tokenBucket: CellAlgorithm = {
  stamp: 2,

  step(cells, start, band, permits, now, patience, out) {
    out.now = now
    if (start >= 0 && permits > 0 && charge(cells, start, band, permits, out, out.next, 0)) {
      out.next[3] = band.windowTicks
      out.changes = answer(out, 0, permits, 0)
    } else anyStep(cells, start, band, permits, now, patience, out)
  },

  take(cells, start, band, permits, out) {
    return charge(cells, start, band, permits, out, cells, start)
  },

  untake(cells, start, { refillTokens }, permits, { now, elapsed }) {
    cells[start] = (cells[start] as number) + permits
    cells[start + 1] = (cells[start + 1] as number) - elapsed * refillTokens
    cells[start + 2] = now - elapsed
  },

  /** A place in the middle of the line stays empty: filling it would let two in where one was to come. */
  refund(cells, start, band, permits, now, grantedAt, next) {
    putLevel(next, cells, start, band, now)
    const lastInLine = now + ticksUntil(next[0] as number, next[1] as number, 0, band)
    const whole = (next[0] as number) + permits
    const isFull = whole >= band.capacity
    put(next, isFull ? band.capacity : whole, isFull ? 0 : (next[1] as number), now, band.windowTicks)
    return grantedAt <= now || lastInLine <= grantedAt
  },

  expiresAt(cells, start, band) {
    const fraction = carriedFraction(cells[start + 1] as number, cells[start + 3] as number, band)
    return (cells[start + 2] as number) + ticksUntil(cells[start] as number, fraction, band.capacity, band)
  },
}

/**
 * Nearly all requests that are granted: a bucket in use, under this very band, with permits enough, and less than one
 * refilled since the last. Puts the new state at `place` in `into`, but for the window, which is the same; false, and nothing
 * done, if anything is otherwise.
 */
function charge(
  cells: Float64Array,
  start: number,
  { capacity, refillTokens, windowTicks }: Band,
  permits: number,
  out: Step,
  into: Float64Array,
  place: number,
): boolean {
  const { now } = out
  const whole = cells[start] as number
  const elapsed = now - (cells[start + 2] as number)
  const fraction = (cells[start + 1] as number) + elapsed * refillTokens
  const left = whole - permits
  const missing = (capacity - left) * windowTicks
  // A bucket that nobody has used has NaN for its level, with which nothing compares.
  const isOrdinary = left >= 0 && whole < capacity && elapsed >= 0 && fraction < windowTicks && missing < exactLimit
  if (!isOrdinary || cells[start + 3] !== windowTicks) return false
  into[place] = left
  into[place + 1] = fraction
  into[place + 2] = now
  out.elapsed = elapsed
  out.remaining = left
  out.resetAt = now + Math.ceil((missing - fraction) / refillTokens)
  return true
}

function anyStep(
  cells: Float64Array,
  start: number,
  band: Band,
  permits: number,
  now: number,
  patience: number,
  out: Step,
): void {
  const { next } = out
  putLevel(next, cells, start, band, now)
  const whole = next[0] as number
  const fraction = next[1] as number
  const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, fraction, permits, band)
  const charged = answer(out, wait, permits, patience)
  const left = charged ? whole - permits : whole
  out.remaining = left > 0 ? left : 0
  out.resetAt = now + ticksUntil(left, fraction, band.capacity, band)
  out.changes = charged || (start >= 0 && now < (cells[start + 2] as number))
  put(next, left, fraction, now, band.windowTicks)
}

/** The level now, under a band that may have changed since it was written. */
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
