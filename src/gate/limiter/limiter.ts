import type { BucketStore } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import type { Acquired } from '../../core/holds/keep-hold.js'
import type { Reservation, ReserveOptions, SettledReservation } from '../../core/reservations/reservation.js'
import type { SingleRuleInput } from '../../rules/schema/input.js'
import type { LimiterBans } from './bans.js'
import type { ConsumeOptions } from './consume-options.js'
import type { LimiterOverrides } from './overrides.js'

/** Options of `createLimiter`: the fields of a rule, plus the store, the clock and the size of the waiting room. */
export type LimiterOptions = SingleRuleInput & {
  /** The bucket store: `memory` (default), a `redis://` URI, or a `BucketStore`. The limiter closes only stores it opened. */
  readonly store?: string | BucketStore | undefined
  /** Clock of the default memory store and of `wait`, for tests. */
  readonly clock?: Clock | undefined
  /** Maximum number of concurrent `wait` calls that are held; default 100. */
  readonly maxConcurrentWaits?: number | undefined
}

/** Options of `Limiter.wait`. */
export interface WaitOptions {
  /** Permits to take; default 1. */
  readonly permits?: number | undefined
  /** Longest wait in milliseconds; default the rule's `maxWaitMs`, or 5000. */
  readonly maxWaitMs?: number | undefined
  /** Aborts the wait and refunds the permits. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `Limiter.reserve`. */
export type LimiterReserveOptions = Omit<ReserveOptions, 'ruleSetId' | 'costs'>

/** A limiter for a single rule, addressed by key. `permits` defaults to 1 in all methods. */
export interface Limiter {
  /**
   * Takes permits if they are available. A rejection is a decision with `allowed: false`, never an error. 0 permits change
   * nothing and return the current state.
   */
  consume(key: string, permits?: number | ConsumeOptions): Promise<Decision>
  /** Like `consume`, but synchronous. Throws unless the store is in memory. */
  consumeSync(key: string, permits?: number | ConsumeOptions): Decision
  /** Returns the current state of a key, as `consume(key, 0)` does. An unknown key has full buckets. */
  state(key: string): Promise<Decision>
  /** Returns the decision that `consume` would make now, and charges nothing. */
  peek(key: string, permits?: number): Promise<Decision>
  /** Returns permits to a key, never above its capacity. */
  refund(key: string, permits?: number): Promise<void>
  /** Other limits for single keys. Requires `overrides: true`. */
  readonly overrides: LimiterOverrides
  /** Lists, sets and lifts bans of keys. Requires `ban`. */
  readonly bans: LimiterBans
  /** Resets a key, so that its buckets are full. */
  reset(key: string): Promise<void>
  /** Resets all keys of the limiter. Other processes with the same store notice it within a second. */
  resetAll(): Promise<void>
  /**
   * Waits until the permits are available, in the order of the calls; `delayMs` is the actual wait. Resolves at once with a
   * rejection if the wait would exceed `maxWaitMs`. An abort refunds the permits and rejects with the signal's reason.
   */
  wait(key: string, options?: WaitOptions): Promise<Decision>
  /**
   * Occupies a slot of a CONCURRENCY limit until `release()` is called. The hold is renewed automatically until then. Under other
   * algorithms it is `consume`, and `release` has no effect.
   *
   * @example
   * const { decision, release } = await limiter.acquire('tenant:7')
   */
  acquire(key: string, permits?: number): Promise<Acquired>
  /**
   * Calls `fn` while a slot is held, and releases it afterwards, even if `fn` fails. Resolves to the decision, and to the result
   * of `fn` if the decision is allowed. Waits for the delay of the decision first, and with WAIT_FOR_REFILL for a slot.
   */
  run<T>(key: string, fn: (decision: Decision) => T | Promise<T>): Promise<RunResult<T>>
  /** Frees the slots of a decision with a `holdId`. Resolves to false if they have expired or were released before. */
  release(holdId: string): Promise<boolean>
  /** Extends a hold by its `maxHold`, from now. Resolves to false if it has expired or was released. */
  renew(holdId: string): Promise<boolean>
  /**
   * Takes an estimate of permits, which `settle` replaces with the actual number. A call with an `id` that is already known takes
   * nothing and resolves to the first result.
   *
   * @throws FluxGateError `FLUXGATE_RESERVATION_UNSUPPORTED` with LEAKY_BUCKET, CONCURRENCY or LEASED
   * @example
   * const { decision, id } = await limiter.reserve('team:7', { permits: 4000, ttlMs: 60_000 })
   * if (decision.allowed) await limiter.settle(id, 1234)
   */
  reserve(key: string, options: LimiterReserveOptions): Promise<Reservation>
  /**
   * Replaces the estimate of a reservation with the actual number of permits; default the estimate. Further calls return the first
   * result. Rejects with FLUXGATE_RESERVATION_UNKNOWN or FLUXGATE_RESERVATION_EXPIRED.
   */
  settle(id: string, permits?: number): Promise<SettledReservation>
  /** Refunds a reservation completely. Rejects like `settle`. */
  cancel(id: string): Promise<SettledReservation>
  /** Rejects pending `wait` calls, refunds their permits, and closes the store if the limiter opened it. */
  close(): Promise<void>
}

/** The result of `Limiter.run`. */
export type RunResult<T> =
  | {
      /** The decision that allowed the call. Its slots are free again. */
      readonly decision: Decision
      /** True: the function was called. */
      readonly ran: true
      /** The result of the function. */
      readonly result: T
    }
  | {
      /** The rejection. */
      readonly decision: Decision
      /** False: the request was rejected, and the function was not called. */
      readonly ran: false
    }
