import type { Decision } from '../../core/decision.js'

/** A permission to go on later, as the refusal that it is where there is no place to wait. */
export function rejectWithoutSlot(decision: Decision, nextFreeMs: number): Decision {
  const { ruleId, band, delayMs } = decision
  const retryAfterMs = Math.max(1, Math.ceil(Math.min(nextFreeMs, delayMs)))
  const bands = decision.bands.map((one) =>
    one.ruleId === ruleId && one.label === band ? { ...one, allowed: false, retryAfterMs } : one,
  )
  return { ...decision, allowed: false, delayMs: 0, reason: 'LIMITED', retryAfterMs, bands }
}
