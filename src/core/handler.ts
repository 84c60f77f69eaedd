import type { Decision } from './decision.js'
import type { RequestContext } from './request-context.js'
import type { Reservation, ReserveOptions, SettledReservation, SettleOptions } from './reservations/reservation.js'
import type { Costs } from './rule.js'
import type { Departure } from './waiting/waiting-room.js'

/** Options of a single check. */
export interface CheckOptions {
  /** Default: the configured rule set, else the only one, else the one called `default`. */
  readonly ruleSetId?: string | undefined
  /** Default 1. Multiplied by the rule's `permits`. 0 charges nothing and returns the current state. */
  readonly permits?: number | undefined
  /**
   * Further costs by name, such as `{ tokens: 1200 }`. A rule charges the cost that its `cost` names, and does not apply to a
   * request without it. `requests` means the same as `permits`.
   */
  readonly costs?: Costs | undefined
  /** Returns the decision without charging. */
  readonly peek?: boolean | undefined
  /** Refunds a delayed request if it aborts before the request is released. A function is called only for delayed requests. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** False: under CONCURRENCY with WAIT_FOR_REFILL, reject at once instead of waiting for a slot to be released. Default true. */
  readonly waitForSlot?: boolean | undefined
  /** Called when the request has to wait, before the decision is returned. Handlers without a waiting room never call this. */
  readonly onEnter?: (() => void) | undefined
  /** Called when a waiting request is released, has aborted, or is rejected because everything closes. */
  readonly onLeave?: ((how: Departure) => void) | undefined
}

/** Makes decisions: in this process (`StandaloneHandler`), or by asking a FluxGate server (`HttpHandler`). */
export interface Handler {
  /** Decides about a request and charges its buckets. */
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /**
   * Optional: like `check`, but returns a plain Decision, or throws, where no I/O is needed. Middleware prefers it, because the
   * application then runs in the same tick. It calls the functions of `options` as methods.
   */
  decide?(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision>
  /** Refunds what a check with the same arguments charged. */
  refund(context: RequestContext, options?: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>): Promise<void>
  /** Optional: frees the slots of a decision with a `holdId`. Resolves to false if they have expired or were released before. */
  release?(holdId: string): Promise<boolean>
  /** Optional: extends a hold by its `maxHold`, from now. Resolves to false if it has expired or was released. */
  renew?(holdId: string): Promise<boolean>
  /** Optional: charges an estimate, which `settle` replaces with the actual cost. */
  reserve?(context: RequestContext, options: ReserveOptions): Promise<Reservation>
  /** Optional. Replaces the estimate of a reservation with its actual cost, exactly once. */
  settle?(id: string, actual?: SettleOptions): Promise<SettledReservation>
  /** Optional: refunds a reservation completely. */
  cancel?(id: string): Promise<SettledReservation>
}
