import type { BandResult, ChargeResult, Demand } from './bucket-store.js'

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
      const { allowed, delay, retryAfter, ...asked } = look.bands[bands.length] as BandResult
      // An override may have come or gone in between.
      const { remaining, resetAt } = standing.bands[bands.length] ?? asked
      const said = { allowed, delay: 0, retryAfter, remaining, resetAt }
      // Who fits into a queue still has to wait until nobody is ahead.
      const isQueue = algorithm === 'LEAKY_BUCKET'
      const untilRoom = allowed ? 0 : retryAfter
      const untilTurn = Math.max(untilRoom, isQueue ? resetAt - now : Math.ceil(delay))
      if (shadow || untilTurn === 0 || group.listed !== undefined) {
        bands.push(said)
        continue
      }
      const { patience } = demands[index] as Demand
      const untilHeld = patience === 0 ? untilRoom : Math.max(isQueue ? untilRoom : 0, untilTurn - patience)
      bands.push({ ...said, allowed: false, retryAfter: Math.min(untilTurn, Math.max(untilPlace, untilHeld)) })
    }
  return { granted: false, now, bands, ...(applied !== undefined && { applied }) }
}
