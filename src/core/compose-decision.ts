import { type BandResult, bandCount, type ChargeResult, type Demand } from './bucket-store.js'
import { ticksPerMs } from './clock.js'
import type { BandDecision, Decision, Reason } from './decision.js'

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
  if (demands.length === 1 && first.group.bands.length === 1) {
    const said = result.bands[0] as BandResult
    const band = bandDecision(first, 0, said)
    return first.shadow
      ? decisionOf(ruleSetId, result, undefined, first, [band], 0, degraded)
      : decisionOf(ruleSetId, result, band, first, [band], said.delay, degraded)
  }
  const bands: BandDecision[] = new Array(bandCount(demands))
  let speaker: BandDecision | undefined
  let speaking = first
  let delay = 0
  let index = 0
  for (const demand of demands) {
    for (let i = 0; i < demand.group.bands.length; i++) {
      const said = result.bands[index] as BandResult
      const band = bandDecision(demand, i, said)
      bands[index++] = band
      if (demand.shadow) continue
      if (said.delay > delay) delay = said.delay
      if (speaker === undefined || (result.granted ? isTighter(band, speaker) : isLaterAllowed(band, speaker))) {
        speaker = band
        speaking = demand
      }
    }
  }
  return decisionOf(ruleSetId, result, speaker, speaking, bands, delay, degraded)
}

function decisionOf(
  ruleSetId: string | null,
  { granted, now }: ChargeResult,
  speaker: BandDecision | undefined,
  { policy }: Demand,
  bands: readonly BandDecision[],
  delay: number,
  degraded: boolean,
): Decision {
  return {
    allowed: granted,
    delayMs: granted ? delay / ticksPerMs : 0,
    reason: granted ? 'ALLOWED' : speaker?.retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
    ruleSetId,
    ruleId: speaker === undefined ? null : speaker.ruleId,
    band: speaker === undefined ? null : speaker.label,
    key: speaker === undefined ? null : speaker.key,
    limit: speaker === undefined ? -1 : speaker.limit,
    remaining: speaker === undefined ? -1 : speaker.remaining,
    retryAfterMs: speaker === undefined ? 0 : speaker.retryAfterMs,
    resetAt: speaker === undefined ? Math.ceil(now / ticksPerMs) : speaker.resetAt,
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

function bandDecision(demand: Demand, index: number, said: BandResult): BandDecision {
  const band = demand.group.bands[index] as Demand['group']['bands'][number]
  return {
    ruleId: demand.group.ruleId,
    label: band.label,
    key: demand.key,
    limit: band.capacity,
    remaining: said.remaining,
    resetAt: Math.ceil(said.resetAt / ticksPerMs),
    retryAfterMs: said.retryAfter === Number.POSITIVE_INFINITY ? null : Math.ceil(said.retryAfter / ticksPerMs),
    allowed: said.allowed,
    shadow: demand.shadow,
    windowMs: band.windowTicks / ticksPerMs,
  }
}

function isTighter(band: BandDecision, than: BandDecision): boolean {
  return band.remaining === than.remaining ? band.resetAt > than.resetAt : band.remaining < than.remaining
}

function isLaterAllowed(band: BandDecision, than: BandDecision): boolean {
  if (than.retryAfterMs === null) return false
  return band.retryAfterMs === null || band.retryAfterMs > than.retryAfterMs
}
