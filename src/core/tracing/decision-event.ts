import type { Decision } from '../decision.js'
import { isSampled, type OpenTelemetryApi } from './open-telemetry.js'

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

function attributesOf(decision: Decision): Record<string, string | number | boolean | string[]> {
  const { allowed, delayMs, reason, ruleSetId, ruleId, band, limit, remaining, retryAfterMs, bands } = decision
  const { degraded, degradedCause } = decision
  const shadowDenied = bands.filter(({ shadow, allowed }) => shadow && !allowed).map((one) => one.ruleId)
  return {
    ...(ruleSetId !== null && { 'fluxgate.rule_set': ruleSetId.slice(0, maxLength) }),
    ...(ruleId !== null && { 'fluxgate.rule': ruleId }),
    ...(band !== null && { 'fluxgate.band': band }),
    'fluxgate.outcome': outcomeOf(decision),
    'fluxgate.reason': reason,
    ...(remaining >= 0 && { 'fluxgate.limit': limit, 'fluxgate.remaining': remaining }),
    ...(delayMs > 0 && { 'fluxgate.delay_ms': delayMs }),
    ...(!allowed && retryAfterMs !== null && { 'fluxgate.retry_after_ms': retryAfterMs }),
    ...(degraded && { 'fluxgate.degraded': true }),
    ...(degradedCause !== undefined && { 'fluxgate.degraded_cause': degradedCause }),
    ...(shadowDenied.length > 0 && { 'fluxgate.shadow_denied': [...new Set(shadowDenied)] }),
  }
}

/** What happened to the request. Delayed means allowed after a delay. */
export type Outcome = 'allowed' | 'delayed' | 'denied'

/** The outcome of a decision, as metrics and events name it. */
export const outcomeOf = ({ allowed, delayMs }: Decision): Outcome =>
  allowed ? (delayMs > 0 ? 'delayed' : 'allowed') : 'denied'
