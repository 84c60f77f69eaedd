import type { Decision } from '../core/decision.js'
import type { RequestContext } from '../core/request-context.js'

/** Called synchronously for every decision. Implementations must not do I/O, and should not allocate for unused data. */
export interface DecisionObserver {
  /** True if the next decision should be timed. Reading the clock twice costs more than counting, so not every decision is. */
  readonly isTiming: boolean
  /** Called after a decision, but not after a peek. `durationMs` is negative if it was not measured. */
  decided(decision: Decision, context: RequestContext, durationMs: number): void
  /** Called if a store call failed, timed out, or was skipped by the open circuit breaker. */
  storeFailed(error: unknown): void
}
