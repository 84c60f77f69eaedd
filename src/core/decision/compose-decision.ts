import {
  type BandResult,
  bandCount,
  type ChargeResult,
  type Claim,
  type Demand,
  type LoneBand,
} from '../bucket-store.js'
import { ticksPerMs } from '../clock.js'
import { type BandDecision, type Decision, untilRetryMs } from '../decision.js'
import type { Band, Policy } from '../rule.js'
import { composeOverridden } from './compose-overridden.js'

/**
 * Turns what the bands said into one Decision. Of a refusal the band that must wait longest speaks; of a permission
 * the tightest. Shadow bands are listed but never speak.
 */
export function composeDecision(
  ruleSetId: string | null,
  demands: readonly Demand[],
  result: ChargeResult,
  degraded: boolean,
): Decision {
  if (result.applied !== undefined)
    return composeOverridden(ruleSetId, result.applied, result, degraded, composeDecision)
  const first = demands[0] as Demand
  if (demands.length === 1) return composeOne(ruleSetId, first, first.key, result, degraded)
  const bands: BandDecision[] = new Array(bandCount(demands))
  let speaker: BandDecision | undefined
  let speaking = first
  let delay = 0
  let index = 0
  for (const demand of demands) {
    for (let i = 0; i < demand.group.bands.length; i++) {
      const said = result.bands[index] as BandResult
      const band = bandDecision(demand, demand.key, demand.group.bands[i] as Band, said)
      bands[index++] = band
      if (demand.shadow) continue
      if (said.delay > delay) delay = said.delay
      if (isLouder(band, speaker, result)) {
        speaker = band
        speaking = demand
      }
    }
  }
  return decisionOf(ruleSetId, result, speaker ?? nobody(result), speaking, bands, delay, degraded)
}

/** The same for one demand, whose key is given apart from what it shares with others of its rule. */
export function composeOne(
  ruleSetId: string | null,
  claim: Claim,
  key: string,
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const { group, policy, shadow } = claim
  const { lone } = group
  const said = result.bands[0] as BandResult
  return lone !== undefined && !shadow && said.allowed && said.delay === 0
    ? composeGrant(ruleSetId, lone, key, small(said.remaining), Math.ceil(said.resetAt / ticksPerMs), policy, degraded)
    : composeBands(ruleSetId, claim, key, result, degraded)
}

/**
 * Granted at once by the only band, said in one place: nothing is read back from what was just made. The bands come first:
 * what takes memory in the midst of a literal makes the engine write the literal twice.
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
  claim: Claim,
  key: string,
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const limits = claim.group.bands
  const bands: BandDecision[] = new Array(limits.length)
  let speaker: BandDecision | undefined
  let delay = 0
  for (let i = 0; i < limits.length; i++) {
    const said = result.bands[i] as BandResult
    const band = bandDecision(claim, key, limits[i] as Band, said)
    bands[i] = band
    if (said.delay > delay) delay = said.delay
    if (isLouder(band, speaker, result)) speaker = band
  }
  return claim.shadow || speaker === undefined
    ? decisionOf(ruleSetId, result, nobody(result), claim, bands, 0, degraded)
    : decisionOf(ruleSetId, result, speaker, claim, bands, delay, degraded)
}

/** What a decision repeats of the band that speaks for it. */
type Speaker = Pick<Decision, 'ruleId' | 'key' | 'limit' | 'remaining' | 'resetAt' | 'retryAfterMs'> & {
  readonly label: string | null
}

/** Speaks where all bands are shadows. */
const nobody = ({ now }: ChargeResult): Speaker => ({
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
  speaker: Speaker,
  { policy }: Claim,
  bands: readonly BandDecision[],
  delay: number,
  degraded: boolean,
): Decision {
  return {
    allowed: granted,
    delayMs: granted && delay > 0 ? delay / ticksPerMs : 0,
    reason: granted ? 'ALLOWED' : speaker.retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
    ruleSetId,
    ruleId: speaker.ruleId,
    band: speaker.label,
    key: speaker.key,
    limit: speaker.limit,
    remaining: speaker.remaining,
    retryAfterMs: speaker.retryAfterMs,
    resetAt: speaker.resetAt,
    policy,
    degraded,
    bands,
  }
}

function bandDecision({ group, shadow }: Claim, key: string, band: Band, said: BandResult): BandDecision {
  return {
    ruleId: group.ruleId,
    label: band.label,
    key,
    limit: band.capacity,
    remaining: small(said.remaining),
    resetAt: Math.ceil(said.resetAt / ticksPerMs),
    retryAfterMs: said.retryAfter === 0 ? 0 : untilRetryMs(said.retryAfter),
    allowed: said.allowed,
    shadow,
    windowMs: band.windowTicks / ticksPerMs,
  }
}

/** A number of permits, which never passes `maxCapacity`, as the kind of number that is kept within an object. */
const small = (permits: number): number => permits | 0

/** Whether a band speaks for the request rather than the one that would do so without it. */
function isLouder(band: BandDecision, than: BandDecision | undefined, { granted }: ChargeResult): boolean {
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
 * The engine lays out objects by the first of their shape that it sees. If it has seen numbers only, it keeps each in memory
 * of its own, and lays out all anew when a fraction comes where none was before. So the first ones have none: from then on
 * small whole numbers stay within the object, and two objects share the others.
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
