import type { Band } from './rule.js'

const unitTicks = [
  ['d', 86_400_000_000],
  ['h', 3_600_000_000],
  ['m', 60_000_000],
  ['s', 1_000_000],
  ['ms', 1_000],
] as const

/** Formats a duration exactly, in the largest unit that divides it: `1h`, `90s`, `1500us`. Different durations give different texts. */
export function durationText(ticks: number): string {
  for (const [unit, size] of unitTicks) if (ticks % size === 0) return `${ticks / size}${unit}`
  return `${ticks}us`
}

/** The window of a band for people: `1h`, or `month` for a calendar. */
export const windowText = ({ windowTicks, calendar }: Pick<Band, 'windowTicks' | 'calendar'>): string =>
  calendar === undefined ? durationText(windowTicks) : calendar.unit.toLowerCase()

/** The default of `refillTokens`. A capacity of 0 is never refilled, but arithmetic needs a positive rate. */
export const defaultRefill = (capacity: number): number => Math.max(1, capacity)

/**
 * The default label of a band, such as `100-per-1h`. That of CONCURRENCY does not contain the capacity: requests in progress
 * must still be counted after the capacity of a rule has changed.
 */
export function bandLabel(band: Omit<Band, 'label'>): string {
  const { algorithm, capacity, refillTokens } = band
  if (algorithm === 'CONCURRENCY') return 'concurrent'
  const refill = refillTokens === defaultRefill(capacity) ? '' : `-refill-${refillTokens}`
  return `${capacity}${refill}-per-${windowText(band)}`
}
