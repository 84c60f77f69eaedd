import type { BucketStore } from '../core/bucket-store.js'
import { type Clock, schedule, systemClock } from '../core/clock.js'
import { FluxGateError, messageOf } from '../core/errors.js'
import { type BreakerOptions, type BreakerState, CircuitBreaker } from './circuit-breaker.js'

export interface ResilientOptions extends BreakerOptions {
  /** How long one call may take; default 100. */
  readonly timeoutMs?: number
  readonly clock?: Clock
  readonly onStateChange?: (state: BreakerState) => void
}

/**
 * A store whose calls end: with its answer, or with an error no later than the deadline, and at once while it is known to
 * be down. A deadline and an error count alike. What to do about it is decided by whoever asked.
 */
export function resilient(store: BucketStore, options: ResilientOptions = {}): BucketStore {
  const { timeoutMs = 100, clock = systemClock, onStateChange } = options
  const breaker = new CircuitBreaker(options, clock)

  const guarded = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
    const before = breaker.state
    if (!breaker.enter())
      throw new FluxGateError('FLUXGATE_STORE_OPEN', `The bucket store has failed repeatedly; ${what} was not tried.`)
    try {
      const answer = await withDeadline(call, what, timeoutMs, clock)
      breaker.succeeded()
      return answer
    } catch (cause) {
      breaker.failed()
      if (cause instanceof FluxGateError) throw cause
      throw new FluxGateError('FLUXGATE_STORE_FAILED', `The bucket store failed to ${what}: ${messageOf(cause)}`, {
        cause,
      })
    } finally {
      if (breaker.state !== before) onStateChange?.(breaker.state)
    }
  }

  return {
    charge: (demands, peek) => guarded('decide', () => store.charge(demands, peek)),
    refund: (refunds) => guarded('take permits back', () => store.refund(refunds)),
    reset: (group, key) => guarded('reset a bucket', () => store.reset(group, key)),
    retire: (group) => store.retire?.(group),
    close: () => store.close(),
  }
}

function withDeadline<T>(call: () => Promise<T>, what: string, timeoutMs: number, clock: Clock): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const cancel = schedule(clock, timeoutMs, () =>
      reject(
        new FluxGateError(
          'FLUXGATE_STORE_TIMEOUT',
          `The bucket store was asked to ${what} and had not answered after ${timeoutMs} ms.`,
        ),
      ),
    )
    Promise.resolve().then(call).then(resolve, reject).finally(cancel)
  })
}
