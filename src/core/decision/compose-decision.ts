import { algorithmTraits } from '../algorithm-traits.js'
import type { BandResult, Charge, ChargeResult } from '../bucket-store.js'
import { periodsOf } from '../calendar/periods.js'
import { ticksPerMs } from '../clock.js'
import { type BandDecision, type Decision, untilRetryMs } from '../decision.js'
import type { Band } from '../rule.js'
import { composeOverridden } from './compose-overridden.js'

/**
 * Combines the results of all bands into one Decision. The deciding band of a rejection is the one with the longest wait, of an
 * allowed request the most restrictive one. Shadow bands are listed but never decide.
 */
export function composeDecision(
  ruleSetId: string | null,
  charges: readonly Charge[],
  result: ChargeResult,
  degraded: boolean,
): Decision {
  if (result.applied !== undefined)
    return composeOverridden(ruleSetId, result.applied, result, degraded, composeDecision)
  const charge = charges[0] as Charge
  const bandResult = result.bands[0] as BandResult
  const { bands, takesHolds } = charge.group
  const band = charges.length === 1 && bands.length === 1 && !charge.shadow ? bands[0] : undefined
  const hasWindow = band !== undefined && band.calendar === undefined && takesHolds !== true
  return hasWindow && result.granted && bandResult.allowed && bandResult.delay === 0
    ? composeGrant(ruleSetId, charge, bandResult, result.now, degraded)
    : composeBands(ruleSetId, charges, result, degraded)
}

/** The decision of a single band with a window of fixed length that grants without a delay. Saves 10 % of the CPU time of `consumeSync`. */
function composeGrant(
  ruleSetId: string | null,
  { group, key, policy }: Charge,
  result: BandResult,
  now: number,
  degraded: boolean,
): Decision {
  const { ruleId } = group
  const { label, capacity: limit, windowTicks } = group.bands[0] as Band
  const remaining = result.remaining | 0
  const resetAt = Math.ceil(result.resetAt / ticksPerMs)
  const windowMs = windowTicks / ticksPerMs
  const bands = [
    { ruleId, label, key, limit, remaining, resetAt, retryAfterMs: 0, allowed: true, shadow: false, windowMs },
  ]
  return {
    allowed: true,
    delayMs: 0,
    reason: 'ALLOWED',
    ruleSetId,
    ruleId,
    band: label,
    key,
    limit,
    remaining,
    retryAfterMs: 0,
    resetAt,
    decidedAt: now / ticksPerMs,
    policy,
    degraded,
    bands,
  }
}

function composeBands(
  ruleSetId: string | null,
  charges: readonly Charge[],
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const { granted } = result
  let count = 0
  for (let i = 0; i < charges.length; i++) count += (charges[i] as Charge).group.bands.length
  const bands: BandDecision[] = new Array(count)
  let index = 0
  let deciding: BandDecision | undefined
  let policy = (charges[0] as Charge).policy
  let delay = 0
  let isBanned = false
  for (let i = 0; i < charges.length; i++) {
    const charge = charges[i] as Charge
    const limits = charge.group.bands
    for (let j = 0; j < limits.length; j++) {
      const bandResult = result.bands[index] as BandResult
      const band = bandDecision(charge, limits[j] as Band, bandResult)
      bands[index++] = band
      if (charge.shadow) continue
      if (bandResult.delay > delay) delay = bandResult.delay
      if (deciding === undefined || (granted ? isMoreRestrictive(band, deciding) : waitsLonger(band, deciding))) {
        deciding = band
        policy = charge.policy
        isBanned = bandResult.banned === true
      }
    }
  }
  const retryAfterMs = deciding === undefined ? 0 : deciding.retryAfterMs
  return {
    allowed: granted,
    delayMs: granted && delay > 0 ? delay / ticksPerMs : 0,
    reason: granted ? 'ALLOWED' : retryAfterMs === null ? 'IMPOSSIBLE' : isBanned ? 'BANNED' : 'LIMITED',
    ruleSetId,
    ruleId: deciding === undefined ? null : deciding.ruleId,
    band: deciding === undefined ? null : deciding.label,
    key: deciding === undefined ? null : deciding.key,
    limit: deciding === undefined ? -1 : deciding.limit,
    remaining: deciding === undefined ? -1 : deciding.remaining,
    retryAfterMs,
    resetAt: deciding === undefined ? Math.ceil(result.now / ticksPerMs) : deciding.resetAt,
    decidedAt: result.now / ticksPerMs,
    policy,
    degraded,
    bands,
  }
}

function bandDecision({ group, key, shadow }: Charge, band: Band, result: BandResult): BandDecision {
  return {
    ruleId: group.ruleId,
    label: band.label,
    key,
    limit: band.capacity,
    // Permits never exceed `maxCapacity`, so they fit a small integer, which V8 stores without an allocation.
    remaining: result.remaining | 0,
    resetAt: Math.ceil(result.resetAt / ticksPerMs),
    retryAfterMs: result.retryAfter === 0 ? 0 : untilRetryMs(result.retryAfter),
    allowed: result.allowed,
    shadow,
    windowMs:
      group.takesHolds || band.calendar !== undefined
        ? windowMsOf(band, result.resetAt)
        : band.windowTicks / ticksPerMs,
  }
}

/** The window of a band; of a calendar band, the length of the period that ends at `resetAt`. CONCURRENCY has none. */
function windowMsOf({ algorithm, calendar, windowTicks }: Band, resetAt: number): number {
  if (algorithmTraits[algorithm].takesHolds) return 0
  if (calendar === undefined) return windowTicks / ticksPerMs
  return (resetAt - periodsOf(calendar).at(resetAt - 1).start) / ticksPerMs
}

type Level = Pick<BandDecision, 'remaining' | 'resetAt'>
type Wait = Pick<BandDecision, 'retryAfterMs'>

/** True if `band` decides about an allowed request in place of `than`. */
export function isMoreRestrictive(band: Level, than: Level): boolean {
  return band.remaining === than.remaining ? band.resetAt > than.resetAt : band.remaining < than.remaining
}

/** True if `band` decides about a rejected request in place of `than`. */
export function waitsLonger(band: Wait, than: Wait): boolean {
  if (than.retryAfterMs === null) return false
  return band.retryAfterMs === null || band.retryAfterMs > than.retryAfterMs
}
