import type { Decision } from '../decision.js'
import { type ActiveSpan, isSampled, type OpenTelemetryApi } from './open-telemetry.js'

/**
 * Adds an event with the decision to the active span, if that is sampled. The event contains no key, because keys are addresses
 * and API keys.
 */
export function addDecisionEvent({ trace }: OpenTelemetryApi, decision: Decision): void {
  const span = trace.getActiveSpan()
  if (isSampled(span)) span.addEvent('fluxgate.decision', attributesOf(decision))
}

/** Bounds the name of an unknown rule set, which a client may have chosen. */
const maxLength = 128

type Attributes = Parameters<ActiveSpan['addEvent']>[1]

/** Assigns each attribute by itself: spreading conditional objects takes ten times as long. */
function attributesOf(decision: Decision): Attributes {
  const { allowed, delayMs, reason, ruleSetId, ruleId, band, limit, remaining, retryAfterMs } = decision
  const attributes: Attributes = { 'fluxgate.outcome': outcomeOf(decision), 'fluxgate.reason': reason }
  if (ruleSetId !== null) attributes['fluxgate.rule_set'] = ruleSetId.slice(0, maxLength)
  if (ruleId !== null) attributes['fluxgate.rule'] = ruleId
  if (band !== null) attributes['fluxgate.band'] = band
  if (remaining >= 0) {
    attributes['fluxgate.limit'] = limit
    attributes['fluxgate.remaining'] = remaining
  }
  if (delayMs > 0) attributes['fluxgate.delay_ms'] = delayMs
  if (!allowed && retryAfterMs !== null) attributes['fluxgate.retry_after_ms'] = retryAfterMs
  if (decision.degraded) attributes['fluxgate.degraded'] = true
  if (decision.degradedCause !== undefined) attributes['fluxgate.degraded_cause'] = decision.degradedCause
  addShadows(attributes, decision)
  return attributes
}

/** The rules in SHADOW mode that would have rejected. The bands of a rule are adjacent. */
function addShadows(attributes: Attributes, { bands }: Decision): void {
  let rules: string[] | undefined
  for (const { shadow, allowed, ruleId } of bands) {
    if (!shadow || allowed || rules?.at(-1) === ruleId) continue
    rules ??= []
    rules.push(ruleId)
  }
  if (rules !== undefined) attributes['fluxgate.shadow_denied'] = rules
}

/** The outcome of a decision. Delayed means allowed after a delay. */
export type Outcome = 'allowed' | 'delayed' | 'denied'

/** Returns the outcome as metrics and events name it. */
export const outcomeOf = ({ allowed, delayMs }: Decision): Outcome =>
  allowed ? (delayMs > 0 ? 'delayed' : 'allowed') : 'denied'
