import type { JointPart } from '../../core/decision/joint/joint-check.js'
import type { BandDecision, Decision } from '../../core/decision.js'
import { type CurrentLimit, codes, type DescriptorStatus } from './messages.js'
import { unitOfWindow } from './units.js'

const maxUint32 = 2 ** 32 - 1

/** The name of a rule for people. */
export type NameOfRule = (ruleSetId: string | null, ruleId: string) => string | undefined

/**
 * The status of one descriptor. Without a limit it has neither `current_limit` nor a reset time, as in envoyproxy/ratelimit. A
 * limit that no client can reach counts as unlimited.
 */
export function statusOf(
  part: JointPart,
  { ruleSetId }: Decision,
  nowMs: number,
  nameOf: NameOfRule,
): DescriptorStatus {
  const { allowed, band } = part
  const code = allowed ? codes.ok : codes.overLimit
  if (band === null) return { code, limit: undefined, limitRemaining: 0, secondsUntilReset: undefined }
  if (isUnlimited(band)) return { code, limit: undefined, limitRemaining: maxUint32, secondsUntilReset: undefined }
  return {
    code,
    limit: limitOf(band, nameOf(ruleSetId, band.ruleId) ?? ''),
    limitRemaining: Math.max(0, band.remaining),
    secondsUntilReset: secondsUntilReset(part.allowed ? null : band.retryAfterMs, band, nowMs),
  }
}

/** True if the rate cannot be stated in requests per second. */
export const isUnlimited = ({ limit, windowMs }: BandDecision): boolean =>
  windowMs > 0 && windowMs < 1_000 && (limit / windowMs) * 1_000 > maxUint32

function limitOf({ limit, windowMs }: BandDecision, name: string): CurrentLimit {
  const { unit, unitMultiplier } = unitOfWindow(windowMs)
  return { name, requestsPerUnit: limit, unit, unitMultiplier }
}

/**
 * Whole seconds, rounded up, because Envoy sends them to clients as X-RateLimit-Reset. A rejected request may be retried then;
 * otherwise the bucket is full or its window ends.
 */
function secondsUntilReset(retryAfterMs: number | null, { resetAt }: BandDecision, nowMs: number): number {
  // Times of a decision are rounded up to whole milliseconds, so `nowMs` is rounded in the same way.
  const waitMs = retryAfterMs ?? resetAt - Math.ceil(nowMs)
  return Math.max(0, Math.ceil(waitMs / 1_000))
}
