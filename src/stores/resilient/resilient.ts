import type {
  BucketStore,
  Charge,
  ChargeResult,
  LeaseRequest,
  LeaseResult,
  LeasingStore,
  Refund,
} from '../../core/bucket-store.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { lateRefundsOf } from '../../core/decision/rate-limiter.js'
import { FluxGateError, isStoreFailure, isUnsent, messageOf } from '../../core/errors.js'
import { checkRange, longestWaitMs } from '../../core/range.js'
import { type BreakerOptions, type BreakerState, CircuitBreaker } from '../../core/scheduling/circuit-breaker.js'
import { Deadlines } from '../../core/scheduling/deadlines.js'
import { boundedProbe } from './bounded-probe.js'
import { timedOut } from './timed-out.js'

export interface ResilientOptions extends BreakerOptions {
  /** How long one call may take, in milliseconds in which the event loop could run; default 100. */
  readonly timeoutMs?: number
  readonly clock?: Clock
  readonly onStateChange?: (state: BreakerState) => void
}

/**
 * A store whose calls always end: with its reply, with an error once the deadline has passed, or at once while the circuit
 * breaker is open. An error and a timeout count alike. The caller applies the failure policy; what a charge or a lease took
 * for a call that had already timed out is given back when the late reply arrives.
 */
export function resilient(store: LeasingStore, options?: ResilientOptions): LeasingStore
export function resilient(store: BucketStore, options?: ResilientOptions): BucketStore
export function resilient(store: BucketStore | LeasingStore, options: ResilientOptions = {}): BucketStore {
  const { timeoutMs = 100, failures = 5, openMs = 500, clock = systemClock, onStateChange } = options
  checkRange('timeoutMs', timeoutMs, 0, longestWaitMs)
  checkRange('failures', failures, 1)
  checkRange('openMs', openMs, 0, longestWaitMs)
  const breaker = new CircuitBreaker({ failures, openMs }, clock, store.failsPartially ? timeoutMs : 0)

  const deadlines = new Deadlines(timeoutMs, clock)
  /** The last failed call found no connection. Then the next one asks for it before anything is prepared. */
  let wasUnreachable = false

  const guarded = <T>(what: string, call: () => Promise<T>, onLate?: (reply: T) => void): Promise<T> => {
    if (wasUnreachable) {
      const { unreachable } = store
      if (unreachable !== undefined) return Promise.reject(unreachable)
      wasUnreachable = false
    }
    const before = breaker.state
    const passage = breaker.enter()
    if (passage === undefined) return Promise.reject(breakerOpen(what))
    return new Promise<T>((resolve, reject) => {
      const notify = (): void => {
        if (breaker.state !== before) onStateChange?.(breaker.state)
      }
      const fail = (cause: unknown): void => {
        wasUnreachable = isUnsent(cause)
        if (wasUnreachable) breaker.abandoned(passage)
        else if (isStoreFailure(cause)) breaker.failed(passage)
        else breaker.succeeded()
        notify()
        reject(asStoreError(cause, what))
      }
      const deadline = deadlines.begin(() => fail(timedOut(what, timeoutMs)))
      started(call).then(
        (reply) => {
          if (!deadlines.end(deadline)) {
            onLate?.(reply)
            return
          }
          breaker.succeeded()
          notify()
          resolve(reply)
        },
        (error: unknown) => {
          if (deadlines.end(deadline)) fail(error)
        },
      )
    })
  }

  /** One error object per operation: capturing a stack trace would cost more than the rest of the decision. */
  const openErrors = new Map<string, FluxGateError>()
  const breakerOpen = (what: string): FluxGateError => {
    const known = openErrors.get(what)
    if (known !== undefined) return known
    const error = new FluxGateError(
      'FLUXGATE_STORE_OPEN',
      `The bucket store has failed repeatedly, so the circuit breaker is open: it was not asked to ${what}.`,
    )
    openErrors.set(what, error)
    return error
  }

  /** What was charged for somebody who has been answered meanwhile. */
  const unwanted: Refund[][] = []
  const giveBack = (demands: readonly Charge[], result: ChargeResult): void => {
    if (!result.granted) return
    if (unwanted.length === 0) setImmediate(giveAllBack)
    unwanted.push(lateRefundsOf(demands, result))
  }
  /**
   * The last first, because a line shrinks only from its end. Best effort: what is not taken back comes back with the next
   * refill.
   */
  const giveAllBack = (): void => {
    for (const refunds of unwanted.splice(0).reverse())
      Promise.resolve()
        .then(() => store.refund(refunds))
        .catch(() => {})
  }

  const bounded: BucketStore = {
    charge: (demands, peek) =>
      guarded('decide', () => store.charge(demands, peek), peek ? undefined : (result) => giveBack(demands, result)),
    refund: (refunds) => guarded('take permits back', () => store.refund(refunds)),
    reset: (group, key) => guarded('reset a bucket', () => store.reset(group, key)),
    retire: (group) => store.retire?.(group),
    ...(store.probe && { probe: boundedProbe(store.probe.bind(store), deadlines, timeoutMs) }),
    close: () => store.close(),
    get breaker() {
      return breaker.state
    },
  }
  if (!('lease' in store)) return bounded

  const giveLeaseBack = ({ group, key }: LeaseRequest, { lease }: LeaseResult): void => {
    if (lease !== undefined)
      store.settle([{ group, key, permits: -lease.permits, ending: lease.ending }]).catch(() => {})
  }
  const leasing: LeasingStore = {
    ...bounded,
    lease: (request) =>
      guarded(
        'lease permits',
        () => store.lease(request),
        (result) => giveLeaseBack(request, result),
      ),
    settle: (settlements) => guarded('settle leases', () => store.settle(settlements)),
    get breaker() {
      return breaker.state
    },
  }
  return leasing
}

/** What is thrown at once is a rejection like any other. */
function started<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call()
  } catch (error) {
    return Promise.reject(error)
  }
}

const asStoreError = (cause: unknown, what: string): FluxGateError =>
  cause instanceof FluxGateError
    ? cause
    : new FluxGateError('FLUXGATE_STORE_FAILED', `The bucket store failed to ${what}: ${messageOf(cause)}`, { cause })
