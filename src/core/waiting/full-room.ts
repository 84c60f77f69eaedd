import { algorithmTraits } from '../algorithm-traits.js'
import type { BandResult, Charge, ChargeResult } from '../bucket-store.js'

/**
 * The rejection of a request that would have to wait while the waiting room is full. Its retry-after is the time until no wait
 * is needed, or until a slot of the waiting room is free and the rest of the wait is within the request's maximum.
 *
 * `immediate` is the result without waiting, `current` the unchanged state of the bands. `ticksUntilRoom` is the time until
 * a slot is free.
 */
export function rejectForFullRoom(
  charges: readonly Charge[],
  immediate: ChargeResult,
  current: ChargeResult,
  ticksUntilRoom: number,
): ChargeResult {
  const { now, applied } = immediate
  const bands: BandResult[] = []
  for (const [index, { group, shadow }] of (applied ?? charges).entries())
    for (const { algorithm } of group.bands) {
      const { delay, ...ownResult } = immediate.bands[bands.length] as BandResult
      // An override may have been added or removed between the two calls.
      const { remaining, resetAt } = current.bands[bands.length] ?? ownResult
      const result = { allowed: ownResult.allowed, delay: 0, retryAfter: ownResult.retryAfter, remaining, resetAt }
      const { isQueue } = algorithmTraits[algorithm]
      const untilPermits = result.allowed ? 0 : result.retryAfter
      const untilRelease = Math.max(untilPermits, isQueue ? resetAt - now : Math.ceil(delay))
      const mustWait = untilRelease > 0 && !shadow && group.listed === undefined
      const { maxWaitTicks } = charges[index] as Charge
      const untilAccepted =
        maxWaitTicks === 0 ? untilPermits : Math.max(isQueue ? untilPermits : 0, untilRelease - maxWaitTicks)
      const retryAfter = Math.min(untilRelease, Math.max(ticksUntilRoom, untilAccepted))
      bands.push(mustWait ? { ...result, allowed: false, retryAfter } : result)
    }
  return { granted: false, now, bands, ...(applied !== undefined && { applied }) }
}
