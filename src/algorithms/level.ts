import type { Band } from '../core/rule.js'
import { exactLimit, mulDiv, mulMod } from './exact.js'

/**
 * Refills a level that grows continuously by `refillTokens` per window. The level is a whole number of permits plus
 * `fraction` / windowTicks. A single number would exceed 2⁵³ for large bands.
 *
 * Writes the level after `elapsed` ticks, at most the capacity, to the first two numbers of `next`.
 */
export function refill(next: Float64Array, before: number, part: number, band: Band, elapsed: number): void {
  const window = band.windowTicks
  const refilled = part + elapsed * band.refillTokens
  // Frequent requests: less than one permit was refilled since the last one.
  if (refilled < window && before < band.capacity) {
    next[0] = before
    next[1] = refilled
    return
  }
  const windows = elapsed < window ? 0 : Math.floor(elapsed / window)
  const rest = elapsed - windows * window
  let whole = before + windows * band.refillTokens + mulDiv(rest, band.refillTokens, window)
  let fraction = part + mulMod(rest, band.refillTokens, window)
  if (fraction >= window) {
    fraction -= window
    whole += 1
  }
  const isFull = whole >= band.capacity
  next[0] = isFull ? band.capacity : whole
  next[1] = isFull ? 0 : fraction
}

/** Ticks until the level reaches `target` whole permits, rounded up. */
export function ticksUntil(whole: number, fraction: number, target: number, band: Band): number {
  const missing = target - whole
  if (missing <= 0) return 0
  const product = missing * band.windowTicks
  return product < exactLimit
    ? Math.ceil((product - fraction) / band.refillTokens)
    : longTicksUntil(missing, fraction, band)
}

function longTicksUntil(missing: number, fraction: number, band: Band): number {
  const { ticks, rest } = ticksFor(missing, band)
  return ticks + Math.ceil((rest - fraction) / band.refillTokens)
}

/** Like `ticksUntil`, without rounding, so that delays keep their exact spacing. */
export function exactTicksUntil(whole: number, fraction: number, target: number, band: Band): number {
  const missing = target - whole
  if (missing <= 0) return 0
  const { ticks, rest } = ticksFor(missing, band)
  const over = rest - fraction
  const wholeTicks = Math.floor(over / band.refillTokens)
  return ticks + wholeTicks + (over - wholeTicks * band.refillTokens) / band.refillTokens
}

/** The time in which `permits` are refilled: whole ticks, and a remainder in units of tick / refillTokens. */
function ticksFor(permits: number, band: Band): { ticks: number; rest: number } {
  const perPermit = Math.floor(band.windowTicks / band.refillTokens)
  const over = band.windowTicks - perPermit * band.refillTokens
  return {
    ticks: permits * perPermit + mulDiv(over, permits, band.refillTokens),
    rest: mulMod(over, permits, band.refillTokens),
  }
}

/** Converts a fraction of another window to a fraction of this band's window, rounded down. */
export function carriedFraction(fraction: number, window: number, band: Band): number {
  return window === band.windowTicks ? fraction : mulDiv(fraction, band.windowTicks, window)
}
