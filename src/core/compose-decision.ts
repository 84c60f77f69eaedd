import {
  type BandResult,
  bandCount,
  type ChargeResult,
  type Claim,
  type Demand,
  type LoneBand,
} from './bucket-store.js'
import { ticksPerMs } from './clock.js'
import { composeOverridden } from './compose-overridden.js'
import { type BandDecision, type Decision, untilRetryMs } from './decision.js'
import type { Band, Policy } from './rule.js'

/**
 * Combines the results of all bands into one Decision. The deciding band of a rejection is the one with the longest
 * retry-after; of an allowed request, it is the most restrictive one. Shadow bands are listed but never decide.
 */
export function composeDecision(
  ruleSetId: string | null,
  charges: readonly Demand[],
  result: ChargeResult,
  degraded: boolean,
): Decision {
  if (result.applied !== undefined)
    return composeOverridden(ruleSetId, result.applied, result, degraded, composeDecision)
  const first = charges[0] as Demand
  if (charges.length === 1) return composeOne(ruleSetId, first, first.key, result, degraded)
  const bands: BandDecision[] = new Array(bandCount(charges))
  let decidingBand: BandDecision | undefined
  let decidingCharge = first
  let delay = 0
  let index = 0
  for (const charge of charges) {
    for (let i = 0; i < charge.group.bands.length; i++) {
      const bandResult = result.bands[index] as BandResult
      const band = bandDecision(charge, charge.key, charge.group.bands[i] as Band, bandResult)
      bands[index++] = band
      if (charge.shadow) continue
      if (bandResult.delay > delay) delay = bandResult.delay
      if (isMoreRestrictive(band, decidingBand, result)) {
        decidingBand = band
        decidingCharge = charge
      }
    }
  }
  return decisionOf(ruleSetId, result, decidingBand ?? noBand(result), decidingCharge, bands, delay, degraded)
}

/** As `composeDecision`, for a single charge. The key is passed separately, so that the caller need not build a `Charge`. */
export function composeOne(
  ruleSetId: string | null,
  ruleCharge: Claim,
  key: string,
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const { group, policy, shadow } = ruleCharge
  const { lone } = group
  const first = result.bands[0] as BandResult
  if (lone === undefined || shadow || !first.allowed || first.delay !== 0)
    return composeBands(ruleSetId, ruleCharge, key, result, degraded)
  const resetAt = Math.ceil(first.resetAt / ticksPerMs)
  return composeGrant(ruleSetId, lone, key, toSmi(first.remaining), resetAt, policy, degraded)
}

/**
 * The decision of a single band that grants without delay. Writes every value directly, without reading back from another
 * new object. `bands` is created first, because V8 writes an object literal twice if it contains an allocation.
 */
function composeGrant(
  ruleSetId: string | null,
  { ruleId, label, limit, windowMs }: LoneBand,
  key: string,
  remaining: number,
  resetAt: number,
  policy: Policy,
  degraded: boolean,
): Decision {
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
    policy,
    degraded,
    bands,
  }
}

function composeBands(
  ruleSetId: string | null,
  ruleCharge: Claim,
  key: string,
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const limits = ruleCharge.group.bands
  const bands: BandDecision[] = new Array(limits.length)
  let decidingBand: BandDecision | undefined
  let delay = 0
  for (let i = 0; i < limits.length; i++) {
    const bandResult = result.bands[i] as BandResult
    const band = bandDecision(ruleCharge, key, limits[i] as Band, bandResult)
    bands[i] = band
    if (bandResult.delay > delay) delay = bandResult.delay
    if (isMoreRestrictive(band, decidingBand, result)) decidingBand = band
  }
  return ruleCharge.shadow || decidingBand === undefined
    ? decisionOf(ruleSetId, result, noBand(result), ruleCharge, bands, 0, degraded)
    : decisionOf(ruleSetId, result, decidingBand, ruleCharge, bands, delay, degraded)
}

/** The members of a decision that are copied from its deciding band. */
type DecidingBand = Pick<Decision, 'ruleId' | 'key' | 'limit' | 'remaining' | 'resetAt' | 'retryAfterMs'> & {
  readonly label: string | null
}

/** Used if all bands are shadows, so that none decides. */
const noBand = ({ now }: ChargeResult): DecidingBand => ({
  ruleId: null,
  label: null,
  key: null,
  limit: -1,
  remaining: -1,
  resetAt: Math.ceil(now / ticksPerMs),
  retryAfterMs: 0,
})

function decisionOf(
  ruleSetId: string | null,
  { granted }: ChargeResult,
  decidingBand: DecidingBand,
  { policy }: Claim,
  bands: readonly BandDecision[],
  delay: number,
  degraded: boolean,
): Decision {
  return {
    allowed: granted,
    delayMs: granted && delay > 0 ? delay / ticksPerMs : 0,
    reason: granted ? 'ALLOWED' : decidingBand.retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
    ruleSetId,
    ruleId: decidingBand.ruleId,
    band: decidingBand.label,
    key: decidingBand.key,
    limit: decidingBand.limit,
    remaining: decidingBand.remaining,
    retryAfterMs: decidingBand.retryAfterMs,
    resetAt: decidingBand.resetAt,
    policy,
    degraded,
    bands,
  }
}

function bandDecision({ group, shadow }: Claim, key: string, band: Band, bandResult: BandResult): BandDecision {
  return {
    ruleId: group.ruleId,
    label: band.label,
    key,
    limit: band.capacity,
    remaining: toSmi(bandResult.remaining),
    resetAt: Math.ceil(bandResult.resetAt / ticksPerMs),
    retryAfterMs: bandResult.retryAfter === 0 ? 0 : untilRetryMs(bandResult.retryAfter),
    allowed: bandResult.allowed,
    shadow,
    windowMs: band.windowTicks / ticksPerMs,
  }
}

/** Converts to a small integer, which V8 stores inside the object. Permits never exceed `maxCapacity`, so nothing is lost. */
const toSmi = (permits: number): number => permits | 0

/** True if `band` must replace `than` as the deciding band. */
function isMoreRestrictive(band: BandDecision, than: BandDecision | undefined, { granted }: ChargeResult): boolean {
  if (than === undefined) return true
  return granted ? isTighter(band, than) : isLaterAllowed(band, than)
}

function isTighter(band: BandDecision, than: BandDecision): boolean {
  return band.remaining === than.remaining ? band.resetAt > than.resetAt : band.remaining < than.remaining
}

function isLaterAllowed(band: BandDecision, than: BandDecision): boolean {
  if (than.retryAfterMs === null) return false
  return band.retryAfterMs === null || band.retryAfterMs > than.retryAfterMs
}

/**
 * V8 chooses the layout of a shape by the first object that it sees. If a field has held numbers only, V8 boxes each of them,
 * and changes the layout of all objects when the first fraction is stored. The first objects therefore hold null instead of
 * numbers: small integers then stay inside the object, and objects share the other numbers.
 */
const number = null as unknown as number
export const firstBand: BandDecision = {
  ruleId: '',
  label: '',
  key: '',
  limit: number,
  remaining: number,
  resetAt: number,
  retryAfterMs: number,
  allowed: false,
  shadow: false,
  windowMs: number,
}
export const firstDecision: Decision = {
  allowed: false,
  delayMs: number,
  reason: 'LIMITED',
  ruleSetId: null,
  ruleId: null,
  band: null,
  key: null,
  limit: number,
  remaining: number,
  retryAfterMs: number,
  resetAt: number,
  policy: 'REJECT',
  degraded: false,
  bands: [firstBand],
}
