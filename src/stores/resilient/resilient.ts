import type { BucketStore, Charge, ChargeResult, Leasing, LeasingStore, Refund } from '../../core/bucket-store.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { lateRefundsOf } from '../../core/decision/rate-limiter.js'
import { decorateStore, withCapabilities } from '../../core/decorate-store.js'
import { FluxGateError, isStoreFailure, isUnsent, messageOf } from '../../core/errors.js'
import { checkRange, longestWaitMs } from '../../core/range.js'
import type { ReservationStorage } from '../../core/reservations/reservation-storage.js'
import { type BreakerOptions, type BreakerState, CircuitBreaker } from '../../core/scheduling/circuit-breaker.js'
import { Deadlines } from '../../core/scheduling/deadlines.js'
import { nextTurn } from '../../core/scheduling/next-turn.js'

/** Options of `resilient`. */
export interface ResilientOptions extends BreakerOptions {
  /** Timeout of one call in milliseconds, counted while the event loop can run; default 100. */
  readonly timeoutMs?: number
  /** Time source; default the system clock. */
  readonly clock?: Clock
  /** Called when the circuit breaker changes its state. */
  readonly onStateChange?: (state: BreakerState) => void
}

/**
 * Adds a timeout and a circuit breaker to a store. Every call ends with a reply, with an error once its timeout has passed, or
 * immediately with an error while the breaker is open. Errors and timeouts count alike. If the reply to a charge or a lease
 * arrives after its timeout, the permits are returned to the store.
 *
 * @throws FluxGateError if an option is out of range
 */
export function resilient(store: LeasingStore, options?: ResilientOptions): LeasingStore
export function resilient(store: BucketStore, options?: ResilientOptions): BucketStore
export function resilient(input: BucketStore, options: ResilientOptions = {}): BucketStore {
  const { timeoutMs = 100, failures = 5, openMs = 500, clock = systemClock, onStateChange } = options
  checkRange('timeoutMs', timeoutMs, 0, longestWaitMs)
  checkRange('failures', failures, 1)
  checkRange('openMs', openMs, 0, longestWaitMs)
  const store = withCapabilities(input)
  const { availability, leasing, holds, variants, reservations, rejectionCache } = store
  const breaker = new CircuitBreaker({ failures, openMs }, clock, availability?.failsPartially ? timeoutMs : 0)
  const deadlines = new Deadlines(timeoutMs, clock)
  /** True if the last failed call found no connection. The next call then fails early unless there is a connection again. */
  let wasUnreachable = false

  const guarded = <T>(operation: string, call: () => Promise<T>, onLate?: (reply: T) => void): Promise<T> => {
    if (wasUnreachable) {
      const unreachable = availability?.unreachable
      if (unreachable !== undefined) return Promise.reject(unreachable)
      wasUnreachable = false
    }
    const before = onStateChange && breaker.state
    const passage = breaker.enter()
    if (passage === undefined) return Promise.reject(breakerOpen(operation))
    return new Promise<T>((resolve, reject) => {
      const fail = (cause: unknown): void => {
        wasUnreachable = isUnsent(cause)
        if (wasUnreachable) breaker.abandoned(passage)
        else if (isStoreFailure(cause)) breaker.failed(passage)
        else breaker.succeeded()
        if (breaker.state !== before) onStateChange?.(breaker.state)
        reject(asStoreError(cause, operation))
      }
      const deadline = deadlines.begin(() => fail(timedOut(operation, timeoutMs)))
      const onError = (error: unknown): void => {
        if (deadlines.end(deadline)) fail(error)
      }
      try {
        call().then((reply) => {
          if (!deadlines.end(deadline)) {
            onLate?.(reply)
            return
          }
          breaker.succeeded()
          if (onStateChange !== undefined && breaker.state !== before) onStateChange(breaker.state)
          resolve(reply)
        }, onError)
      } catch (error) {
        onError(error)
      }
    })
  }

  /** One error object per operation: capturing a stack trace would cost more than the rest of the decision. */
  const openErrors = new Map<string, FluxGateError>()
  const breakerOpen = (operation: string): FluxGateError => {
    const error = openErrors.get(operation) ?? storeOpen(operation)
    openErrors.set(operation, error)
    return error
  }

  /** Refunds of charges whose callers have already received a timeout. */
  const lateRefunds: Refund[][] = []
  const refundLate = (charges: readonly Charge[], result: ChargeResult): void => {
    if (!result.granted) return
    if (lateRefunds.length === 0) nextTurn(sendLateRefunds)
    lateRefunds.push(lateRefundsOf(charges, result))
  }
  /** Newest first, because a queue shrinks only from its end. Best effort: permits that are not refunded return by refill. */
  const sendLateRefunds = (): void => {
    for (const refunds of lateRefunds.splice(0).reverse())
      Promise.resolve()
        .then(() => store.refund(refunds))
        .catch(() => {})
  }

  return decorateStore(store, {
    charge(charges, peek) {
      const rejection = rejectionCache?.find(charges, peek)
      if (rejection !== undefined) return Promise.resolve(rejection)
      const onLate = peek ? undefined : (result: ChargeResult) => refundLate(charges, result)
      return guarded('decide', () => store.charge(charges, peek), onLate)
    },
    refund: (refunds) => guarded('refund permits', () => store.refund(refunds)),
    reset: (group, key) => guarded('reset a bucket', () => store.reset(group, key)),
    leasing: leasing && guardLeasing(leasing, guarded),
    holds: holds && {
      release: (released) => guarded('release a hold', () => holds.release(released)),
      renew: (renewed) => guarded('renew a hold', () => holds.renew(renewed)),
    },
    variants: variants && {
      charge(charge, variant) {
        // A forced charge stays: it is not known how much of it the debt allowed.
        const onLate = (result: ChargeResult): void => {
          if (variant === 'PARTIAL') refundLate([{ ...charge, permits: result.taken ?? 0 }], result)
        }
        return guarded('decide', () => variants.charge(charge, variant), onLate)
      },
    },
    reservations: reservations && guardReservations(reservations, guarded),
    availability: {
      isBounded: availability?.isBounded,
      get isConnected() {
        return availability?.isConnected
      },
      get unreachable() {
        return availability?.unreachable
      },
      get breaker() {
        return breaker.state
      },
      get heldPermits() {
        return availability?.heldPermits
      },
      ...(availability?.ready && { ready: (withinMs) => availability.ready?.(withinMs) ?? Promise.resolve() }),
      ...(availability?.probe && { probe: boundedProbe(() => availability.probe?.(), deadlines, timeoutMs) }),
    },
  })
}

type Guarded = <T>(operation: string, call: () => Promise<T>, onLate?: (reply: T) => void) => Promise<T>

const guardLeasing = (leasing: Leasing, guarded: Guarded): Leasing => ({
  lease: (request) =>
    guarded(
      'lease permits',
      () => leasing.lease(request),
      ({ lease }) => {
        const { group, key } = request
        if (lease !== undefined)
          leasing.settle([{ group, key, permits: -lease.permits, ending: lease.ending }]).catch(() => {})
      },
    ),
  settle: (settlements) => guarded('settle leases', () => leasing.settle(settlements)),
})

/** A reservation whose caller has not received its id is canceled. Others can be repeated or ended by their id. */
const guardReservations = (reservations: ReservationStorage, guarded: Guarded): ReservationStorage => ({
  reserve: (request) =>
    guarded(
      'reserve permits',
      () => reservations.reserve(request),
      (outcome) => {
        if (outcome === 'FULL' || !outcome.result.granted || request.isNamed) return
        const { id } = request
        reservations.settle({ id, amounts: undefined, currentGroup: (group) => group }).catch(() => {})
      },
    ),
  settle: (request) => guarded('settle a reservation', () => reservations.settle(request)),
  ...(reservations.reservedIn && {
    reservedIn: (group, key, now) =>
      guarded('read reservations', async () => reservations.reservedIn?.(group, key, now) ?? []),
  }),
})

/**
 * Gives a probe the timeout of a call. The circuit breaker neither blocks nor counts probes: an open breaker must not prevent
 * a probe from detecting the recovery, and probes say nothing about the calls that the breaker counts.
 */
const boundedProbe =
  (probe: () => Promise<void> | undefined, deadlines: Deadlines, timeoutMs: number): (() => Promise<void>) =>
  () =>
    new Promise((resolve, reject) => {
      const deadline = deadlines.begin(() => reject(timedOut('decide', timeoutMs)))
      Promise.resolve()
        .then(probe)
        .finally(() => deadlines.end(deadline))
        .then(resolve, reject)
    })

const timedOut = (operation: string, timeoutMs: number): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_TIMEOUT',
    `The bucket store failed to ${operation}: it did not reply within ${timeoutMs} ms.`,
  )

const storeOpen = (operation: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_OPEN',
    `The bucket store failed to ${operation}: its circuit breaker is open after repeated failures.`,
  )

const asStoreError = (cause: unknown, operation: string): FluxGateError =>
  cause instanceof FluxGateError
    ? cause
    : new FluxGateError('FLUXGATE_STORE_FAILED', `The bucket store failed to ${operation}: ${messageOf(cause)}`, {
        cause,
      })
