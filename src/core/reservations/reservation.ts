import type { Decision } from '../decision.js'
import type { Costs } from '../rule.js'

/** Whether the permits of a reservation that is neither settled nor canceled within its `ttlMs` stay charged (`KEEP`) or are refunded. */
export type OnExpire = 'KEEP' | 'REFUND'

/** The estimate of a reservation. */
export interface ReserveOptions {
  /** Default: the configured rule set, else the only one, else the one called `default`. */
  readonly ruleSetId?: string | undefined
  /** The estimated permits; default 1. */
  readonly permits?: number | undefined
  /** The estimated further costs by name, such as `{ tokens: 1200 }`. Only costs that are named here can be settled; 0 is allowed. */
  readonly costs?: Costs | undefined
  /** The time within which the reservation must be settled or canceled, in milliseconds; at most 31 days. */
  readonly ttlMs: number
  /** Identifies the reservation, so that the call can be repeated: it charges once. 1 to 256 characters. Default: a random id. */
  readonly id?: string | undefined
  /** KEEP (default): a reservation that is never settled stays charged. REFUND: it is refunded after `ttlMs`. */
  readonly onExpire?: OnExpire | undefined
}

/** The actual costs of a reservation. Every omitted cost is charged as estimated. */
export interface SettleOptions {
  /** The permits that were actually used. Default: the estimate. */
  readonly permits?: number | undefined
  /** The actual costs by name, such as `{ tokens: 934 }`. Only costs of the estimate can be settled. */
  readonly costs?: Costs | undefined
}

/** The result of `reserve`. */
export interface Reservation {
  /** The decision about the estimate. If `allowed` is false, nothing is reserved, and there is nothing to settle. */
  readonly decision: Decision
  /** The id for `settle` and `cancel`. */
  readonly id: string
}

/** The result of `settle` and `cancel`. Further calls for the same id return the first result. */
export interface SettledReservation {
  /** The id of the reservation. */
  readonly id: string
  /** How the reservation has ended. */
  readonly status: 'SETTLED' | 'CANCELED'
  /** The buckets after the settlement or cancellation. `remaining` is 0 in debt. */
  readonly decision: Decision
}

/** Charges an estimate first, and the actual cost when it is known. */
export interface ReservationHandler {
  /** Settles a reservation at its actual cost. Rejects with FLUXGATE_RESERVATION_UNKNOWN or FLUXGATE_RESERVATION_EXPIRED. */
  settle(id: string, actual?: SettleOptions): Promise<SettledReservation>
  /** Refunds a reservation completely. Rejects like `settle`. */
  cancel(id: string): Promise<SettledReservation>
}

/** The longest `ttlMs`: 31 days. */
export const maxReservationMs = 31 * 24 * 3600 * 1000

/** How long an expired reservation is still known as expired. */
export const expiredTicks = 60_000_000

/** The most open reservations per bucket. */
export const maxOpenReservations = 10_000
