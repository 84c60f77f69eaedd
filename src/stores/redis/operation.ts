import type { BucketGroup, Charge, ChargeVariant, LeaseRequest, Refund, Settlement } from '../../core/bucket-store.js'
import type { Hold } from '../../core/holds/hold-storage.js'
import type { Layouts } from './bucket-keys.js'

/** One operation of the script. It is executed completely or not at all. */
export type Operation =
  | { readonly type: 'CHARGE' | 'PEEK'; readonly items: readonly Charge[] }
  | { readonly type: ChargeVariant; readonly items: readonly [Charge] }
  | { readonly type: 'REFUND' | 'RELEASE'; readonly items: readonly Refund[] }
  | { readonly type: 'RENEW'; readonly items: readonly Hold[] }
  | { readonly type: 'LEASE'; readonly items: readonly [LeaseRequest] }
  | { readonly type: 'SETTLE'; readonly items: readonly Settlement[] }
  | { readonly type: 'RESET'; readonly items: readonly Pick<Refund, 'group' | 'key'>[] }
  | { readonly type: 'BACKDATE'; readonly items: readonly Backdate[] }
  | { readonly type: 'RESERVE'; readonly items: readonly Charge[]; readonly reservation: NewReservation }
  | { readonly type: 'END'; readonly items: readonly EndedCharge[]; readonly ending: Ending }

/** The record of a reservation, and its id in the buckets: 64 bits of a digest, as two unsigned integers. */
export interface ReservationPlace {
  readonly recordKey: string
  readonly id: readonly [high: number, low: number]
}

interface NewReservation extends ReservationPlace {
  readonly ttlTicks: number
  readonly isRefunded: boolean
  /** Describes the reservation in ASCII. Kept with the record. */
  readonly text: string
}

export interface Ending extends ReservationPlace {
  /** ABORT: removes the record. */
  readonly kind: 'SETTLE' | 'CANCEL' | 'ABORT'
  /** True if a reservation that has expired cannot be ended. */
  readonly isTimed: boolean
}

/** A charge of a reservation, with the actual permits. */
export interface EndedCharge {
  readonly group: BucketGroup
  readonly key: string
  readonly permits: number
  /** The permits that were reserved. */
  readonly estimate: number
}

/**
 * Corrects the timestamp of a bucket after the store's clock has stepped back. The store assumes that no time has passed since
 * the bucket was written. This process has measured how much has, so it sets the timestamp to the correct time on the new clock.
 */
export interface Backdate {
  readonly group: BucketGroup
  readonly key: string
  /** The current timestamp of the bands. A band with another timestamp was written since and is not changed. */
  readonly from: number
  /** The new timestamp of each band; negative to keep it. */
  readonly instants: readonly number[]
}

/** True for operations that charge or read the buckets of rules. An override then replaces the buckets of its key. */
export const isCharge = (
  operation: Operation,
): operation is Extract<Operation, { readonly items: readonly Charge[] }> => chargeTypes.has(operation.type)

const chargeTypes: ReadonlySet<Operation['type']> = new Set(['CHARGE', 'PEEK', 'FORCE', 'PARTIAL', 'RESERVE'])

/** Redis keys of buckets and overrides. */
export interface Names {
  readonly prefix: string
  readonly layouts: Layouts
  /** The ticks between which calendar bands need periods: the server's time, and the latest time of a bucket. */
  calendarSpan(): { readonly from: number; readonly to: number }
  /** The location of the override of a key. */
  overrideOf(group: BucketGroup, key: string): OverrideLocation
}

/** The last edit of an override: the Redis key that contains it, and its known value; `''` if there was none. */
export interface LastEdit {
  readonly key: string
  readonly known: string
}

export interface OverrideLocation {
  /** The hash that contains the override, if there is one. */
  readonly hash: string
  /** The override of an address range that contains the key; applies if the key has none of its own. Empty without one. */
  readonly otherwise: Buffer
}

/** An item whose override must be looked up. */
export interface Lookup {
  readonly operation: Operation
  readonly item: number
  readonly otherwise: Buffer
}
