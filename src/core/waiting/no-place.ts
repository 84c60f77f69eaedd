import { algorithmTraits } from '../algorithm-traits.js'
import type { BandResult, ChargeResult, Demand } from '../bucket-store.js'

/**
 * What the bands say to a request that would have to be held when there is no place to hold it. It is allowed as soon as it
 * need not be held, or there is a place and its caller has the patience for the rest.
 *
 * `look` is what they say to somebody who would not wait, `standing` how they are, `untilPlace` in ticks.
 */
export function noPlace(
  demands: readonly Demand[],
  look: ChargeResult,
  standing: ChargeResult,
  untilPlace: number,
): ChargeResult {
  const { now, applied } = look
  const bands: BandResult[] = []
  for (const [index, { group, shadow }] of (applied ?? demands).entries())
    for (const { algorithm } of group.bands) {
      const { delay, ...asked } = look.bands[bands.length] as BandResult
      // An override may have come or gone in between.
      const { remaining, resetAt } = standing.bands[bands.length] ?? asked
      const said = { allowed: asked.allowed, delay: 0, retryAfter: asked.retryAfter, remaining, resetAt }
      const { isQueue } = algorithmTraits[algorithm]
      const untilRoom = said.allowed ? 0 : said.retryAfter
      const untilTurn = Math.max(untilRoom, isQueue ? resetAt - now : Math.ceil(delay))
      const needsPlace = untilTurn > 0 && !shadow && group.listed === undefined
      const { patience } = demands[index] as Demand
      const untilHeld = patience === 0 ? untilRoom : Math.max(isQueue ? untilRoom : 0, untilTurn - patience)
      const retryAfter = Math.min(untilTurn, Math.max(untilPlace, untilHeld))
      bands.push(needsPlace ? { ...said, allowed: false, retryAfter } : said)
    }
  return { granted: false, now, bands, ...(applied !== undefined && { applied }) }
}
