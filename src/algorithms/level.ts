import type { Band } from '../core/rule.js'
import { exactLimit, mulDiv, mulMod } from './exact.js'

/**
 * A level that moves steadily by `refillTokens` per window: permits as a whole number plus `fraction` / windowTicks.
 * Two numbers instead of one, because one permit × one tick of a large band would not fit below 2⁵³.
 *
 * Puts the level after `elapsed` ticks of refill, never above capacity, into the first two numbers of `next`.
 */
export function refill(next: Float64Array, before: number, part: number, band: Band, elapsed: number): void {
  const fraction = part + elapsed * band.refillTokens
  if (fraction >= band.windowTicks || before >= band.capacity) {
    refillWhole(next, before, part, band, elapsed)
    return
  }
  // Less than a permit has come: so it is for whoever comes often.
  next[0] = before
  next[1] = fraction
}

function refillWhole(next: Float64Array, before: number, part: number, band: Band, elapsed: number): void {
  const window = band.windowTicks
  const turns = elapsed < window ? 0 : Math.floor(elapsed / window)
  const rest = elapsed - turns * window
  const product = rest * band.refillTokens
  const gained = product < exactLimit ? Math.floor(product / window) : mulDiv(rest, band.refillTokens, window)
  let whole = before + turns * band.refillTokens + gained
  let fraction = part + (product < exactLimit ? product - gained * window : mulMod(rest, band.refillTokens, window))
  if (fraction >= window) {
    fraction -= window
    whole += 1
  }
  const isFull = whole >= band.capacity
  next[0] = isFull ? band.capacity : whole
  next[1] = isFull ? 0 : fraction
}

/** Ticks, rounded up, until the level has reached `target` whole permits. */
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

/** The same without rounding, for delays that must not bunch up. */
export function exactTicksUntil(whole: number, fraction: number, target: number, band: Band): number {
  const missing = target - whole
  if (missing <= 0) return 0
  const { ticks, rest } = ticksFor(missing, band)
  const over = rest - fraction
  const turns = Math.floor(over / band.refillTokens)
  return ticks + turns + (over - turns * band.refillTokens) / band.refillTokens
}

/** The time `permits` take to refill: whole ticks, and a rest in units of tick / refillTokens. */
function ticksFor(permits: number, band: Band): { ticks: number; rest: number } {
  const perPermit = Math.floor(band.windowTicks / band.refillTokens)
  const over = band.windowTicks - perPermit * band.refillTokens
  return {
    ticks: permits * perPermit + mulDiv(over, permits, band.refillTokens),
    rest: mulMod(over, permits, band.refillTokens),
  }
}

/** What was written as a fraction of another window becomes one of this band's, rounded down. */
export function carriedFraction(fraction: number, window: number, band: Band): number {
  return window === band.windowTicks ? fraction : mulDiv(fraction, band.windowTicks, window)
}
