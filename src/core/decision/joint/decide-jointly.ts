import type { Charge } from '../../bucket-store.js'
import type { BandDecision, Decision } from '../../decision.js'
import { isMoreRestrictive, waitsLonger } from '../compose-decision.js'
import type { DecideOptions } from '../rate-limiter.js'
import { mergedCharges, type PartCharges, withoutPermits } from './joint-charges.js'
import type { JointDecision, JointOptions, JointPart } from './joint-check.js'

/** Decides about charges: all of them are taken, or none is. */
export interface ChargeLimiter {
  decide(ruleSetId: string | null, charges: readonly Charge[], options?: DecideOptions): Decision | Promise<Decision>
}

/** The limiters of a plan. `refund` gives permits back. */
export interface JointLimiter extends ChargeLimiter {
  readonly ruleSetId: string
  refund(charges: readonly Charge[]): Promise<void>
}

/**
 * Decides about several parts at once. Parts that take no permits are peeked first, because a store cannot make a charge depend
 * on a bucket from which it takes nothing, and refunds follow an allowed decision. Usually all parts take permits, and the store
 * is called once.
 */
export function decideJointly(
  limiter: JointLimiter,
  parts: readonly PartCharges[],
  options: JointOptions,
): JointDecision | Promise<JointDecision> {
  const decided = parts.every(({ kind }) => kind === 'COUNTED')
    ? limiter.decide(limiter.ruleSetId, mergedCharges(parts), options)
    : decideInSteps(limiter, parts, options)
  return decided instanceof Promise
    ? decided.then((decision) => ({ decision, parts: partsOf(decision, parts) }))
    : { decision: decided, parts: partsOf(decided, parts) }
}

async function decideInSteps(
  limiter: JointLimiter,
  parts: readonly PartCharges[],
  options: JointOptions,
): Promise<Decision> {
  const chargesOf = (kind: PartCharges['kind']) => mergedCharges(parts.filter((part) => part.kind === kind))
  const [free, counted, refunded] = [chargesOf('FREE'), chargesOf('COUNTED'), chargesOf('REFUND')]
  const decisions: Decision[] = []
  const isAllowed = (): boolean => decisions.every(({ allowed }) => allowed)
  if (free.length > 0) decisions.push(await peek(limiter, free, options))
  if (counted.length > 0)
    decisions.push(
      await (isAllowed() ? limiter.decide(limiter.ruleSetId, counted, options) : peek(limiter, counted, options)),
    )
  if (refunded.length > 0) {
    // Both start in the same turn, so one call of a remote store executes them in this order.
    const refund = isAllowed() && !options.peek ? limiter.refund(refunded) : undefined
    const [current] = await Promise.all([currentState(limiter, refunded, options), refund])
    decisions.push(current)
  }
  return decisions.reduce(joined)
}

/** The current state, rejected if the permits would be. Only a rejection needs a second call, for its retry time. */
async function peek(limiter: JointLimiter, charges: readonly Charge[], options: JointOptions): Promise<Decision> {
  const current = await currentState(limiter, charges, options)
  const hasRoom = charges.every(({ group, key, permits, shadow }) =>
    current.bands.every(
      (band) => shadow || band.ruleId !== group.ruleId || band.key !== key || band.remaining >= permits,
    ),
  )
  if (current.allowed && hasRoom) return current
  return limiter.decide(limiter.ruleSetId, charges, { ...options, peek: true })
}

const currentState = (
  { ruleSetId, decide }: JointLimiter,
  charges: readonly Charge[],
  options: JointOptions,
): Decision | Promise<Decision> => decide(ruleSetId, withoutPermits(charges), { ...options, peek: true })

/** Joins two decisions about different buckets. */
function joined(one: Decision, other: Decision): Decision {
  const allowed = one.allowed && other.allowed
  const deciding = decidingOf(one, other, allowed)
  const cause = one.degradedCause ?? other.degradedCause
  return {
    ...deciding,
    delayMs: allowed ? Math.max(one.delayMs, other.delayMs) : 0,
    decidedAt: Math.max(one.decidedAt, other.decidedAt),
    degraded: one.degraded || other.degraded,
    ...(cause !== undefined && { degradedCause: cause }),
    bands: [...one.bands, ...other.bands],
  }
}

function decidingOf(one: Decision, other: Decision, allowed: boolean): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one
  if (allowed) {
    if (one.ruleId === null || other.ruleId === null) return one.ruleId === null ? other : one
    return isMoreRestrictive(other, one) ? other : one
  }
  return waitsLonger(other, one) ? other : one
}

const unlimited: JointPart = Object.freeze({ allowed: true, band: null })

function partsOf(decision: Decision, parts: readonly PartCharges[]): readonly JointPart[] {
  const result: JointPart[] = new Array(parts.length)
  let isExplained = decision.allowed
  for (let i = 0; i < parts.length; i++) {
    const { kind, charges } = parts[i] as PartCharges
    const part = partOf(decision, charges, kind === 'REFUND')
    if (!part.allowed) isExplained = true
    result[i] = part
  }
  // Rejected without a band of its own, such as by an override that denies, or because the store fails.
  return isExplained
    ? result
    : result.map((part, i) => (isRejected(decision, parts[i]) ? { ...part, allowed: false } : part))
}

function partOf({ allowed, bands }: Decision, charges: readonly Charge[], isRefund: boolean): JointPart {
  if (charges.length === 0) return unlimited
  let deciding: BandDecision | null = null
  let isRejected = false
  for (let i = 0; i < bands.length; i++) {
    const band = bands[i] as BandDecision
    if (band.shadow || !isOf(band, charges)) continue
    const rejects = !allowed && !band.allowed && !isRefund
    if (deciding === null || (rejects && !isRejected)) deciding = band
    else if (rejects ? waitsLonger(band, deciding) : !isRejected && isMoreRestrictive(band, deciding)) deciding = band
    if (rejects) isRejected = true
  }
  return { allowed: !isRejected, band: deciding }
}

function isOf(band: BandDecision, charges: readonly Charge[]): boolean {
  for (let i = 0; i < charges.length; i++) {
    const { group, key } = charges[i] as Charge
    if (band.ruleId === group.ruleId && band.key === key) return true
  }
  return false
}

/** True if the decision names a charge of the part, or no charge at all. */
const isRejected = ({ ruleId, key }: Decision, part: PartCharges | undefined): boolean =>
  part !== undefined &&
  part.kind !== 'REFUND' &&
  part.charges.length > 0 &&
  (ruleId === null ||
    part.charges.some((charge) => charge.group.ruleId === ruleId && (key === null || charge.key === key)))
