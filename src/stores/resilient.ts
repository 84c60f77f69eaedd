import type {
  BucketStore,
  ChargeResult,
  Demand,
  LeaseRequest,
  LeaseResult,
  LeasingStore,
  Refund,
} from '../core/bucket-store.js'
import { type BreakerOptions, type BreakerState, CircuitBreaker } from '../core/circuit-breaker.js'
import { type Clock, systemClock } from '../core/clock.js'
import { Deadlines } from '../core/deadlines.js'
import { FluxGateError, isStoreTrouble, messageOf } from '../core/errors.js'
import { checkRange, longestWaitMs } from '../core/range.js'
import { refundsOf } from '../core/rate-limiter.js'
import { boundedProbe } from './bounded-probe.js'
import { timedOut } from './timed-out.js'

export interface ResilientOptions extends BreakerOptions {
  /** How long one call may take; default 100. */
  readonly timeoutMs?: number
  readonly clock?: Clock
  readonly onStateChange?: (state: BreakerState) => void
}

/**
 * A store whose calls end: with its answer, or with an error no later than the deadline, and at once while it is known to
 * be down. A deadline and an error count alike. What to do about it is decided by whoever asked; what a charge or a lease
 * took for somebody who has been answered meanwhile is given back.
 */
export function resilient(store: LeasingStore, options?: ResilientOptions): LeasingStore
export function resilient(store: BucketStore, options?: ResilientOptions): BucketStore
export function resilient(store: BucketStore | LeasingStore, options: ResilientOptions = {}): BucketStore {
  const { timeoutMs = 100, failures = 5, openMs = 1_000, clock = systemClock, onStateChange } = options
  checkRange('timeoutMs', timeoutMs, 0, longestWaitMs)
  checkRange('failures', failures, 1)
  checkRange('openMs', openMs, 0, longestWaitMs)
  const breaker = new CircuitBreaker({ failures, openMs }, clock, store.failsInParts ? timeoutMs : 0)

  const deadlines = new Deadlines(timeoutMs, clock)

  const guarded = <T>(what: string, call: () => Promise<T>, onLate?: (answer: T) => void): Promise<T> => {
    const before = breaker.state
    if (!breaker.enter()) return Promise.reject(leftAlone(what))
    return new Promise<T>((resolve, reject) => {
      const tell = (): void => {
        if (breaker.state !== before) onStateChange?.(breaker.state)
      }
      const fail = (cause: unknown): void => {
        if (isStoreTrouble(cause)) breaker.failed()
        else breaker.succeeded()
        tell()
        reject(asStoreError(cause, what))
      }
      const deadline = deadlines.begin(() => fail(timedOut(what, timeoutMs)))
      started(call).then(
        (answer) => {
          if (!deadlines.end(deadline)) {
            onLate?.(answer)
            return
          }
          breaker.succeeded()
          tell()
          resolve(answer)
        },
        (error: unknown) => {
          if (deadlines.end(deadline)) fail(error)
        },
      )
    })
  }

  /** Always the same: where it was made says nothing, and to find that out takes longer than all the rest of a decision. */
  const refusals = new Map<string, FluxGateError>()
  const leftAlone = (what: string): FluxGateError => {
    const known = refusals.get(what)
    if (known !== undefined) return known
    const error = new FluxGateError(
      'FLUXGATE_STORE_OPEN',
      `The bucket store has failed repeatedly and is left alone for a moment: it was not asked to ${what}.`,
    )
    refusals.set(what, error)
    return error
  }

  /** What was charged for somebody who has been answered meanwhile. */
  const unwanted: Refund[][] = []
  const giveBack = (demands: readonly Demand[], result: ChargeResult): void => {
    if (!result.granted) return
    if (unwanted.length === 0) setImmediate(giveAllBack)
    unwanted.push(refundsOf(demands, result))
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
