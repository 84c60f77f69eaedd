import { type BandResult, bandCount, type ChargeResult, type Claim, type Demand } from './bucket-store.js'
import { ticksPerMs } from './clock.js'
import type { BandDecision, Decision, Reason } from './decision.js'
import type { Band } from './rule.js'

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
  const first = demands[0] as Demand
  if (demands.length === 1) return composeOne(ruleSetId, first, first.key, result, degraded)
  const bands: BandDecision[] = new Array(bandCount(demands))
  let speaker: Speaker | undefined
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
      if (speaker === undefined || (result.granted ? isTighter(band, speaker) : isLaterAllowed(band, speaker))) {
        speaker = band
        speaking = demand
      }
    }
  }
  return decisionOf(ruleSetId, result, speaker ?? nobody(result), speaking, bands, delay, degraded)
}

/**
 * The same for one demand, whose key is given apart from what it shares with others of its rule. With one band, which is
 * most frequent, all is said in one place: numbers are worked out once, and nothing is read back from what was just made.
 */
export function composeOne(
  ruleSetId: string | null,
  claim: Claim,
  key: string,
  result: ChargeResult,
  degraded: boolean,
): Decision {
  const { group, policy, shadow } = claim
  if (shadow || group.bands.length > 1) return composeBands(ruleSetId, claim, key, result, degraded)
  const { ruleId } = group
  const { label, capacity: limit, windowTicks } = group.bands[0] as Band
  const said = result.bands[0] as BandResult
  const { allowed, delay, retryAfter } = said
  const remaining = compact(said.remaining)
  const resetAt = Math.ceil(said.resetAt / ticksPerMs)
  const retryAfterMs = retryAfter === 0 ? 0 : untilRetry(retryAfter)
  const windowMs = compact(windowTicks / ticksPerMs)
  return {
    allowed,
    delayMs: delay === 0 ? 0 : delay / ticksPerMs,
    reason: allowed ? 'ALLOWED' : retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
    ruleSetId,
    ruleId,
    band: label,
    key,
    limit,
    remaining,
    retryAfterMs,
    resetAt,
    policy,
    degraded,
    bands: [{ ruleId, label, key, limit, remaining, resetAt, retryAfterMs, allowed, shadow, windowMs }],
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
  const said = result.bands[0] as BandResult
  const first = bandDecision(claim, key, limits[0] as Band, said)
  const bands = [first]
  let speaker = first
  let { delay } = said
  for (let i = 1; i < limits.length; i++) {
    const said = result.bands[i] as BandResult
    const band = bandDecision(claim, key, limits[i] as Band, said)
    bands.push(band)
    if (said.delay > delay) delay = said.delay
    if (result.granted ? isTighter(band, speaker) : isLaterAllowed(band, speaker)) speaker = band
  }
  return claim.shadow
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

/** A decision that no bucket was asked for. */
export function unmeteredDecision(
  allowed: boolean,
  reason: Reason,
  nowMs: number,
  details: Partial<Pick<Decision, 'ruleSetId' | 'ruleId' | 'policy' | 'degraded' | 'retryAfterMs'>> = {},
): Decision {
  return {
    allowed,
    delayMs: 0,
    reason,
    ruleSetId: null,
    ruleId: null,
    band: null,
    key: null,
    limit: -1,
    remaining: allowed ? -1 : 0,
    retryAfterMs: allowed ? 0 : null,
    resetAt: Math.ceil(nowMs),
    policy: 'REJECT',
    degraded: false,
    bands: [],
    ...details,
  }
}

function bandDecision({ group, shadow }: Claim, key: string, band: Band, said: BandResult): BandDecision {
  return {
    ruleId: group.ruleId,
    label: band.label,
    key,
    limit: band.capacity,
    remaining: compact(said.remaining),
    resetAt: Math.ceil(said.resetAt / ticksPerMs),
    retryAfterMs: said.retryAfter === 0 ? 0 : untilRetry(said.retryAfter),
    allowed: said.allowed,
    shadow,
    windowMs: compact(band.windowTicks / ticksPerMs),
  }
}

const untilRetry = (ticks: number): number | null =>
  ticks === Number.POSITIVE_INFINITY ? null : Math.ceil(ticks / ticksPerMs)

/** The same number, as one that the engine keeps within an object, if it is whole and small; any other takes memory of its own. */
const compact = (value: number): number => ((value | 0) === value ? value | 0 : value)

function isTighter(band: Speaker, than: Speaker): boolean {
  return band.remaining === than.remaining ? band.resetAt > than.resetAt : band.remaining < than.remaining
}

function isLaterAllowed(band: Speaker, than: Speaker): boolean {
  if (than.retryAfterMs === null) return false
  return band.retryAfterMs === null || band.retryAfterMs > than.retryAfterMs
}
