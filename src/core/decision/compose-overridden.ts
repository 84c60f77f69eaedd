import type { BandResult, Charge, ChargeResult } from '../bucket-store.js'
import { ticksPerMs } from '../clock.js'
import { type Decision, untilRetryMs } from '../decision.js'
import { unmeteredDecision } from './unmetered-decision.js'

/** The type of `composeDecision`, which is passed in to avoid a circular import. */
type Compose = (
  ruleSetId: string | null,
  charges: readonly Charge[],
  result: ChargeResult,
  degraded: boolean,
) => Decision

/**
 * Composes a decision in which keys have overrides. An ALLOW override exempts a key from one rule only; the other rules still
 * limit it. A DENY override rejects the request, and its rule decides unless another rule has a longer retry-after.
 */
export function composeOverridden(
  ruleSetId: string | null,
  charges: readonly Charge[],
  result: ChargeResult,
  degraded: boolean,
  compose: Compose,
): Decision {
  const metered = charges.filter(({ group }) => group.listed === undefined)
  const bands: BandResult[] = []
  let denial: { readonly charge: Charge; readonly bandResult: BandResult } | undefined
  let index = 0
  for (const charge of charges)
    for (let i = 0; i < charge.group.bands.length; i++) {
      const bandResult = result.bands[index++] as BandResult
      if (charge.group.listed === undefined) bands.push(bandResult)
      else if (!charge.shadow && (denial === undefined || bandResult.retryAfter > denial.bandResult.retryAfter))
        denial = { charge, bandResult }
    }
  const { granted, now } = result
  const limited = metered.length === 0 ? undefined : compose(ruleSetId, metered, { granted, now, bands }, degraded)
  if (denial !== undefined) return denied(ruleSetId, denial.charge, denial.bandResult, limited, result, degraded)
  const allowListed = charges.find(({ group, shadow }) => group.listed === 'ALLOW' && !shadow)
  if (limited !== undefined && (allowListed === undefined || limited.ruleId !== null)) return limited
  const { group, key, policy } = allowListed ?? (charges[0] as Charge)
  const details = { ruleSetId, degraded, policy, ...(allowListed !== undefined && { ruleId: group.ruleId, key }) }
  const reason = allowListed === undefined ? 'ALLOWED' : 'ALLOW_LISTED'
  return { ...unmeteredDecision(true, reason, now / ticksPerMs, details), bands: limited?.bands ?? [] }
}

/** `limited` is the decision of the rules without an ALLOW or DENY override. */
function denied(
  ruleSetId: string | null,
  { group, key, policy }: Charge,
  { retryAfter, resetAt }: BandResult,
  limited: Decision | undefined,
  { now }: ChargeResult,
  degraded: boolean,
): Decision {
  const retryAfterMs = untilRetryMs(retryAfter)
  const isMoreRestrictive =
    limited !== undefined &&
    limited.ruleId !== null &&
    limited.retryAfterMs !== 0 &&
    retryAfterMs !== null &&
    (limited.retryAfterMs === null || limited.retryAfterMs > retryAfterMs)
  if (isMoreRestrictive) return limited
  const details = { ruleSetId, ruleId: group.ruleId, key, policy, degraded, retryAfterMs, limit: 0 }
  const listed = unmeteredDecision(false, 'DENY_LISTED', now / ticksPerMs, details)
  return { ...listed, resetAt: Math.ceil(resetAt / ticksPerMs), bands: limited?.bands ?? [] }
}
