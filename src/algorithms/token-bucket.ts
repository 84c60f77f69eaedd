/**
 * Token bucket: `capacity` permits at most, refilled steadily at `refillTokens` per window, full at first.
 *
 * State: [whole, fraction, at, windowTicks], the level as it was at `at`; the window says what the fraction is a fraction
 * of. Nothing is rounded away, so two close requests lose nothing between them. Callers that wait have taken their permits
 * already: the level is then below zero.
 */
import type { Band } from '../core/rule.js'
import { answer } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { exactLimit } from './exact.js'
import { carriedFraction, refill, ticksUntil } from './level.js'

export const tokenBucket: CellAlgorithm = {
  step(cells, start, band, permits, now, patience, out) {
    const { next } = out
    putLevel(next, cells, start, band, now)
    const whole = next[0] as number
    const fraction = next[1] as number
    const wait = permits <= whole ? 0 : waitFor(whole, fraction, permits, band)
    const charged = answer(out, wait, permits, patience)
    const left = charged ? whole - permits : whole
    out.remaining = left > 0 ? left : 0
    out.resetAt = now + ticksUntil(left, fraction, band.capacity, band)
    out.changes = charged || (start >= 0 && now < (cells[start + 2] as number))
    put(next, left, fraction, now, band.windowTicks)
  },

  take(cells, start, band, permits, now, out) {
    const { capacity, refillTokens, windowTicks } = band
    const whole = cells[start] as number
    const elapsed = now - (cells[start + 2] as number)
    const fraction = (cells[start + 1] as number) + elapsed * refillTokens
    const left = whole - permits
    const missing = (capacity - left) * windowTicks
    // In use, under this very band, with permits enough, and less than one refilled since. Nothing compares with NaN.
    const isOrdinary = left >= 0 && whole < capacity && elapsed >= 0 && fraction < windowTicks && missing < exactLimit
    if (!isOrdinary || cells[start + 3] !== windowTicks) return false
    cells[start] = left
    cells[start + 1] = fraction
    cells[start + 2] = now
    out.allowed = true
    out.delay = 0
    out.retryAfter = 0
    out.remaining = left
    out.resetAt = now + Math.ceil((missing - fraction) / refillTokens)
    return true
  },

  refund(cells, start, band, permits, now, _grantedAt, next) {
    putLevel(next, cells, start, band, now)
    const whole = (next[0] as number) + permits
    const isFull = whole >= band.capacity
    put(next, isFull ? band.capacity : whole, isFull ? 0 : (next[1] as number), now, band.windowTicks)
    return true
  },

  expiresAt(cells, start, band) {
    const fraction = carriedFraction(cells[start + 1] as number, cells[start + 3] as number, band)
    return (cells[start + 2] as number) + ticksUntil(cells[start] as number, fraction, band.capacity, band)
  },
}

function waitFor(whole: number, fraction: number, permits: number, band: Band): number {
  return permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, fraction, permits, band)
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
