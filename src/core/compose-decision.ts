import type { BandResult, ChargeResult, Demand } from './bucket-store.js'
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
  const bands: BandDecision[] = new Array(result.bands.length)
  let speaker: BandDecision | undefined
  let speakerDemand: Demand | undefined
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
        speakerDemand = demand
      }
    }
  }
  return {
    allowed: result.granted,
    delayMs: result.granted ? delay / ticksPerMs : 0,
    reason: result.granted ? 'ALLOWED' : speaker?.retryAfterMs === null ? 'IMPOSSIBLE' : 'LIMITED',
    ruleSetId,
    ruleId: speaker?.ruleId ?? null,
    band: speaker?.label ?? null,
    key: speaker?.key ?? null,
    limit: speaker?.limit ?? -1,
    remaining: speaker?.remaining ?? -1,
    retryAfterMs: speaker === undefined ? 0 : speaker.retryAfterMs,
    resetAt: speaker?.resetAt ?? Math.ceil(result.now / ticksPerMs),
    policy: speakerDemand?.policy ?? 'REJECT',
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
