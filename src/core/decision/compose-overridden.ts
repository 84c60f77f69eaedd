import type { BandResult, ChargeResult, Demand } from '../bucket-store.js'
import { ticksPerMs } from '../clock.js'
import { type Decision, untilRetryMs } from '../decision.js'
import { unmeteredDecision } from './unmetered-decision.js'

/** How a decision is made of what the bands of all its demands said. */
type Compose = (
  ruleSetId: string | null,
  demands: readonly Demand[],
  result: ChargeResult,
  degraded: boolean,
) => Decision

/**
 * Of a decision about identities with overrides. Whoever is not limited by one rule is still limited by the others; whoever
 * one rule denies is refused, and that rule speaks unless another makes the caller wait longer.
 */
export function composeOverridden(
  ruleSetId: string | null,
  demands: readonly Demand[],
  result: ChargeResult,
  degraded: boolean,
  compose: Compose,
): Decision {
  const metered = demands.filter(({ group }) => group.listed === undefined)
  const bands: BandResult[] = []
  let denial: { readonly demand: Demand; readonly said: BandResult } | undefined
  let index = 0
  for (const demand of demands)
    for (let i = 0; i < demand.group.bands.length; i++) {
      const said = result.bands[index++] as BandResult
      if (demand.group.listed === undefined) bands.push(said)
      else if (!demand.shadow && (denial === undefined || said.retryAfter > denial.said.retryAfter))
        denial = { demand, said }
    }
  const { granted, now } = result
  const ofOthers = metered.length === 0 ? undefined : compose(ruleSetId, metered, { granted, now, bands }, degraded)
  if (denial !== undefined) return denied(ruleSetId, denial.demand, denial.said, ofOthers, result, degraded)
  const enforcing = demands.find(({ group, shadow }) => group.listed === 'ALLOW' && !shadow)
  if (ofOthers !== undefined && (enforcing === undefined || ofOthers.ruleId !== null)) return ofOthers
  const { group, key, policy } = enforcing ?? (demands[0] as Demand)
  const details = { ruleSetId, degraded, policy, ...(enforcing !== undefined && { ruleId: group.ruleId, key }) }
  const reason = enforcing === undefined ? 'ALLOWED' : 'ALLOW_LISTED'
  return { ...unmeteredDecision(true, reason, now / ticksPerMs, details), bands: ofOthers?.bands ?? [] }
}

function denied(
  ruleSetId: string | null,
  { group, key, policy }: Demand,
  { retryAfter, resetAt }: BandResult,
  ofOthers: Decision | undefined,
  { now }: ChargeResult,
  degraded: boolean,
): Decision {
  const retryAfterMs = untilRetryMs(retryAfter)
  const isLouder =
    ofOthers !== undefined &&
    ofOthers.ruleId !== null &&
    ofOthers.retryAfterMs !== 0 &&
    retryAfterMs !== null &&
    (ofOthers.retryAfterMs === null || ofOthers.retryAfterMs > retryAfterMs)
  if (isLouder) return ofOthers
  const details = { ruleSetId, ruleId: group.ruleId, key, policy, degraded, retryAfterMs, limit: 0 }
  const listed = unmeteredDecision(false, 'DENY_LISTED', now / ticksPerMs, details)
  return { ...listed, resetAt: Math.ceil(resetAt / ticksPerMs), bands: ofOthers?.bands ?? [] }
}
