import { type BandResult, bandCount, type Charge, type ChargeResult } from '../bucket-store.js'
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
  demands: readonly Charge[],
  result: ChargeResult,
  degraded: boolean,
): Decision {
  if (result.applied !== undefined)
    return composeOverridden(ruleSetId, result.applied, result, degraded, composeDecision)
  const { granted } = result
  const bands: BandDecision[] = new Array(bandCount(demands))
  let deciding: BandDecision | undefined
  let policy = (demands[0] as Charge).policy
  let delay = 0
  let index = 0
  for (let i = 0; i < demands.length; i++) {
    const demand = demands[i] as Charge
    const limits = demand.group.bands
    for (let j = 0; j < limits.length; j++) {
      const step = result.bands[index] as BandResult
      const band = bandDecision(demand, limits[j] as Band, step)
      bands[index++] = band
      if (demand.shadow) continue
      if (step.delay > delay) delay = step.delay
      if (deciding !== undefined && !(granted ? isTighter(band, deciding) : waitsLonger(band, deciding))) continue
      deciding = band
      policy = demand.policy
    }
  }
  const retryAfterMs = deciding === undefined ? 0 : deciding.retryAfterMs
  return {
    allowed: granted,
    delayMs: granted && delay > 0 ? delay / ticksPerMs : 0,
    reason: granted ? 'ALLOWED' : retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
    ruleSetId,
    ruleId: deciding === undefined ? null : deciding.ruleId,
    band: deciding === undefined ? null : deciding.label,
    key: deciding === undefined ? null : deciding.key,
    limit: deciding === undefined ? -1 : deciding.limit,
    remaining: deciding === undefined ? -1 : deciding.remaining,
    retryAfterMs,
    resetAt: deciding === undefined ? Math.ceil(result.now / ticksPerMs) : deciding.resetAt,
    policy,
    degraded,
    bands,
  }
}

function bandDecision({ group, key, shadow }: Charge, band: Band, step: BandResult): BandDecision {
  return {
    ruleId: group.ruleId,
    label: band.label,
    key,
    limit: band.capacity,
    // Permits never exceed `maxCapacity`, so they fit a small integer, which V8 stores without an allocation.
    remaining: step.remaining | 0,
    resetAt: Math.ceil(step.resetAt / ticksPerMs),
    retryAfterMs: step.retryAfter === 0 ? 0 : untilRetryMs(step.retryAfter),
    allowed: step.allowed,
    shadow,
    windowMs: band.windowTicks / ticksPerMs,
  }
}

function isTighter(band: BandDecision, than: BandDecision): boolean {
  return band.remaining === than.remaining ? band.resetAt > than.resetAt : band.remaining < than.remaining
}

function waitsLonger(band: BandDecision, than: BandDecision): boolean {
  if (than.retryAfterMs === null) return false
  return band.retryAfterMs === null || band.retryAfterMs > than.retryAfterMs
}
