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
  const { bands, hasFixedWindows } = charge.group
  if (charges.length > 1 || !hasFixedWindows || charge.shadow || !result.granted)
    return composeBands(ruleSetId, charges, result, degraded)
  if (bands.length > 1) return composeGrants(ruleSetId, charges, result, degraded)
  const bandResult = result.bands[0] as BandResult
  return isImmediate(bandResult)
    ? composeGrant(ruleSetId, charge, bandResult, result.now, degraded)
    : composeBands(ruleSetId, charges, result, degraded)
}

const isImmediate = ({ allowed, delay }: BandResult): boolean => allowed && delay === 0

/** A grant by a single band without a delay. Saves 10 % of the CPU time of `consumeSync`. */
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

/** A grant by several bands of one rule, unless there is a delay. Saves 8 % of the CPU time of `consumeSync` with two bands. */
function composeGrants(
  ruleSetId: string | null,
  charges: readonly Charge[],
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const { group, key, policy } = charges[0] as Charge
  const { ruleId, bands: limits } = group
  const bands: BandDecision[] = new Array(limits.length)
  let deciding = limits[0] as Band
  let remaining = 0
  let resetAt = 0
  for (let i = 0; i < limits.length; i++) {
    const band = limits[i] as Band
    const bandResult = result.bands[i] as BandResult
    if (!isImmediate(bandResult)) return composeBands(ruleSetId, charges, result, degraded)
    const left = bandResult.remaining | 0
    const fullAt = Math.ceil(bandResult.resetAt / ticksPerMs)
    bands[i] = {
      ruleId,
      label: band.label,
      key,
      limit: band.capacity,
      remaining: left,
      resetAt: fullAt,
      retryAfterMs: 0,
      allowed: true,
      shadow: false,
      windowMs: band.windowTicks / ticksPerMs,
    }
    if (i > 0 && (left === remaining ? fullAt <= resetAt : left > remaining)) continue
    deciding = band
    remaining = left
    resetAt = fullAt
  }
  return {
    allowed: true,
    delayMs: 0,
    reason: 'ALLOWED',
    ruleSetId,
    ruleId,
    band: deciding.label,
    key,
    limit: deciding.capacity,
    remaining,
    retryAfterMs: 0,
    resetAt,
    decidedAt: result.now / ticksPerMs,
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
