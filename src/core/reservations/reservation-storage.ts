import type { BucketGroup, Charge, ChargeResult } from '../bucket-store.js'
import type { BandDecision, Reason } from '../decision.js'
import type { Costs } from '../rule.js'
import type { OnExpire } from './reservation.js'

/** The cost that a charge estimates: its name, and the permits that are charged per unit. */
export interface ChargedCost {
  /** The name of the cost: `requests`, which stands for `permits`, or a name in `costs`. */
  readonly name: string
  /** The permits that the rule charges per unit of the cost. */
  readonly permits: number
}

/** The part of a reservation that its settlement needs, and that a store keeps with it. */
export interface ReservationTerms {
  /** The rule set that decided; null if none applied. */
  readonly ruleSetId: string | null
  /** The reason of the decision if it has no charges. */
  readonly reason: Reason
  /** The cost of each charge. */
  readonly costs: readonly ChargedCost[]
  /** The names of the costs that can be settled. */
  readonly names: readonly string[]
}

/** A reservation to make. */
export interface ReservationRequest extends ReservationTerms {
  /** Unique among all reservations of the store. */
  readonly id: string
  /** False if no caller knows the id before the reply, so that none repeats the call after a failure. */
  readonly isNamed: boolean
  /** The estimate. None of the charges waits. */
  readonly charges: readonly Charge[]
  /** The time until the reservation expires, in ticks. */
  readonly ttlTicks: number
  /** Whether the permits of an expired reservation stay charged or are refunded. */
  readonly onExpire: OnExpire
}

/** The buckets of a reservation after it was made or settled. */
export interface ReservedState {
  /** The rule set that decided; null if none applied. */
  readonly ruleSetId: string | null
  /** The reason of the decision if it has no charges. */
  readonly reason: Reason
  /** The charges that were decided, with the groups of overrides. */
  readonly charges: readonly Charge[]
  /** Without `applied`. */
  readonly result: ChargeResult
}

/** FULL: a bucket has too many open reservations. */
export type ReserveOutcome = ReservedState | 'FULL'

/** The end of a reservation. */
export interface SettlementRequest {
  /** The id of the reservation. */
  readonly id: string
  /** The actual costs; a cost without an amount costs what was estimated. Undefined cancels the reservation. */
  readonly amounts: Costs | undefined
  /** Returns the group that has the buckets of `group` now, or undefined if they were reset or their rule was removed. */
  readonly currentGroup: (group: BucketGroup) => BucketGroup | undefined
}

/** The buckets of a reservation that was settled or canceled. */
export interface Settlement extends ReservedState {
  /** True if the reservation was canceled, so that its estimate was refunded. */
  readonly isCanceled: boolean
}

/** UNKNOWN: the reservation does not exist. EXPIRED: its time to live is over. */
export type SettleOutcome =
  | Settlement
  | 'UNKNOWN'
  | 'EXPIRED'
  | {
      /** The name of a cost that was not reserved. */
      readonly unknownCost: string
      /** The names of the costs that can be settled. */
      readonly names: readonly string[]
    }

/** The open reservations of one bucket. */
export interface ReservedPermits {
  /** The number of reservations that are neither settled, canceled nor expired. */
  readonly reservations: number
  /** The permits that they have taken. */
  readonly permits: number
}

/** A bucket, as `look` returns it. */
export interface BucketState extends BandDecision {
  /** Its open reservations; missing if it has none, or if the store does not report them. */
  readonly reserved?: ReservedPermits
}

export const noneReserved: ReservedPermits = { reservations: 0, permits: 0 }

/**
 * Keeps reservations. A charge is recorded together with its buckets, and a settlement replaces it exactly once. Calls with an
 * id that is already known return the first result, so every call can be repeated after a failure.
 */
export interface ReservationStorage {
  /** Charges the estimate and records the reservation. A rejection records nothing. */
  reserve(request: ReservationRequest): Promise<ReserveOutcome>
  /** Replaces the estimate with the actual cost. */
  settle(request: SettlementRequest): Promise<SettleOutcome>
  /** Optional. The open reservations of a key, by band of the group. `now` is the tick of a result of the store. */
  reservedIn?(group: BucketGroup, key: string, now: number): Promise<readonly ReservedPermits[]>
  /** Optional, for stores in this process: true if there is such a reservation. */
  has?(id: string): boolean
}

/** The permits that a charge should have taken. */
export function actualPermits(
  { permits: estimate }: Pick<Charge, 'permits'>,
  { name, permits }: ChargedCost,
  amounts: Costs | undefined,
): number {
  if (amounts === undefined) return 0
  const amount = Object.hasOwn(amounts, name) ? amounts[name] : undefined
  // Buckets take at most one capacity of debt, so larger numbers make no difference.
  return amount === undefined ? estimate : Math.min(amount * permits, estimate + maxExcess)
}

/** More than a bucket can hold and owe together. */
const maxExcess = 4_000_000_000

/** The first cost that was not reserved. */
export const unknownCostIn = (amounts: Costs | undefined, names: readonly string[]): string | undefined =>
  amounts && Object.keys(amounts).find((name) => !names.includes(name))

/** True for charges that took permits: a shadow rule that denies was not charged, and neither was a key without a limit. */
export function chargedOf(charges: readonly Charge[], { bands }: ChargeResult): boolean[] {
  let first = 0
  return charges.map(({ group }) => {
    const own = bands.slice(first, first + group.bands.length)
    first += group.bands.length
    return group.listed === undefined && own.every(({ allowed }) => allowed)
  })
}
