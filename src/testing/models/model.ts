import { maxDebt } from '../../algorithms/answer.js'
import type { HoldId } from '../../core/holds/hold-storage.js'
import type { Band } from '../../core/rule.js'

/**
 * The reference model of an algorithm: straightforward, in arbitrary precision, with unbounded memory. The engine and every
 * store are compared with the models decision by decision and field by field. Times are in ticks.
 */
export interface Model {
  /** The result of a request, without charging it. */
  peek(band: Band, permits: bigint, now: bigint, maxWaitTicks: bigint): ModelResult
  /** Takes the permits for the time that `ask` has returned. */
  charge(band: Band, permits: bigint, now: bigint, grantedAt: bigint, hold?: HoldId): void
  refund(band: Band, permits: bigint, now: bigint, grantedAt: bigint): void
  /** Releases a hold. Only of algorithms that take holds. */
  release?(hold: HoldId, now: bigint): boolean
  renew?(band: Band, hold: HoldId, now: bigint): boolean
  /** Takes permits in any case, into debt. */
  force(band: Band, permits: bigint, now: bigint): void
  /** Updates the bucket to the current time. Called before every other operation. */
  touch(band: Band, now: bigint): void
  remaining(band: Band, now: bigint): bigint
  resetAt(band: Band, now: bigint): bigint
  /** Converts the bucket to another definition of its band, with the same used fraction at `now`. Not of models that keep reservations. */
  scale?(change: DefinitionChange, now: bigint): void
  /** True if the bucket is equivalent to an unused one. */
  isUnused(band: Band, now: bigint): boolean
  copy(): Model
  /** The permits in a bucket that refills in whole permits, negative in debt. Other models do not need it. */
  level?(): bigint
}

/** A change of the definition of a band under `onRuleChange: SCALE`. Permits are counted in shares. */
export interface DefinitionChange {
  /** The old definition, in shares. */
  readonly from: Band
  readonly to: Band
  /** The shares of a full bucket under the new definition. */
  readonly shares: bigint
}

/** The used shares after the change, rounded up. Any unit can be scaled, such as 1/window of a share. */
export const scaleUsed = (used: bigint, { from, shares }: DefinitionChange): bigint =>
  divideUp(used * shares, sizes(from).capacity)

/** A tick keeps the part of the window that has passed since then. */
export const scaleTick = (tick: bigint, { from, to }: DefinitionChange, now: bigint): bigint =>
  tick >= now ? tick : now - ((now - tick) * sizes(to).window) / sizes(from).window

export interface ModelResult {
  readonly allowed: boolean
  /** The tick from which the permits may be used, rounded up. */
  readonly grantedAt: bigint
  /** The delay until then, which may have a fraction. */
  readonly delay: number
  /** Ticks until the same request would be granted; undefined for never. */
  readonly retryAfter: bigint | undefined
}

/** The result of a request whose permits are available at the tick `availableAt`, or never if undefined. */
export function resultAt(availableAt: bigint | undefined, now: bigint, maxWaitTicks: bigint): ModelResult {
  if (availableAt === undefined) return { allowed: false, grantedAt: now, delay: 0, retryAfter: undefined }
  const wait = availableAt - now
  if (wait > maxWaitTicks) return { allowed: false, grantedAt: now, delay: 0, retryAfter: wait - maxWaitTicks }
  return { allowed: true, grantedAt: availableAt, delay: Number(wait), retryAfter: 0n }
}

/** The permits that a forced charge takes from a bucket with `available` permits, which are negative in debt. */
export const forcedPermits = (band: Band, permits: bigint, available: bigint): bigint =>
  smaller(permits, larger(0n, available + BigInt(maxDebt(band))))

export const divideUp = (a: bigint, b: bigint): bigint => (a <= 0n ? a / b : (a + b - 1n) / b)
export const divideDown = (a: bigint, b: bigint): bigint => (a >= 0n ? a / b : -((-a + b - 1n) / b))
export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)
export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)
export const sizes = (band: Band) => ({
  capacity: BigInt(band.capacity),
  refill: BigInt(band.refillTokens),
  window: BigInt(band.windowTicks),
})
