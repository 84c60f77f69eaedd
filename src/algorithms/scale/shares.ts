/**
 * Shares: the unit in which a bucket of a rule with `onRuleChange: SCALE` counts. A full bucket has a number of shares that is a
 * common multiple of the capacities of all definitions under which it was charged, so that a permit of each definition is a whole
 * number of shares. A change of the capacity then changes no share, and the used fraction stays exactly the same.
 *
 * Twin of shares.lua.
 */
import type { Band } from '../../core/rule.js'
import { mulDiv, mulDivUp, mulMod } from '../exact.js'

/** The most shares of a bucket: they take at most five bytes, also in debt. */
export const maxShares = 2 ** 38
/** The most shares of a log: an entry, which may be a whole bucket and a debt, has three bytes for them. */
export const maxLogShares = 2 ** 23 - 1

/**
 * The number of shares of a bucket with `shares` shares after a charge under `capacity`. If the least common multiple is too
 * large, it is the largest multiple of the capacity, and the used shares are rounded up. `largest` is the largest other number
 * of permits that is counted in shares: the refill, and the limits of a single call.
 */
export function sharesFor(shares: number, capacity: number, largest: number, max: number): number {
  let perPermit = shares / greatestCommonDivisor(shares, capacity)
  if (perPermit * capacity > max) perPermit = Math.floor(max / capacity)
  if (perPermit * largest > max) perPermit = Math.max(1, Math.floor(max / largest))
  return capacity * perPermit
}

function greatestCommonDivisor(a: number, b: number): number {
  let [larger, smaller] = [a, b]
  while (smaller > 0) [larger, smaller] = [smaller, larger % smaller]
  return larger
}

/** The band with its permits counted in shares. */
export const inShares = (band: Band, perPermit: number): Band =>
  perPermit === 1 ? band : { ...band, capacity: band.capacity * perPermit, refillTokens: band.refillTokens * perPermit }

/** ⌈value·to/from⌉ */
export const scaleUp = (value: number, to: number, from: number): number => mulDivUp(to, value, from)

/** Scales `whole` + `fraction`/window by to/from, rounded up. Writes the result to the first two numbers of `next`. */
export function scaleLevel(
  next: Float64Array,
  whole: number,
  fraction: number,
  window: number,
  to: number,
  from: number,
): void {
  const wholes = mulMod(to, whole, from) + mulDiv(fraction, to, window)
  const rest = wholes % from
  // The rest is (rest + mulMod(fraction, to, window)/window) / from.
  const parts = mulMod(rest, window, from) + mulMod(fraction, to, window)
  const scaled = mulDiv(rest, window, from) + Math.ceil(parts / from)
  const carry = scaled >= window ? 1 : 0
  next[0] = mulDiv(to, whole, from) + Math.floor(wholes / from) + carry
  next[1] = scaled - carry * window
}
