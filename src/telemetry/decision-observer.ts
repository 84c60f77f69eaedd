import type { Decision } from '../core/decision.js'
import type { RequestContext } from '../core/request-context.js'

/** Told of every decision at once, on its own path: no I/O, and nothing made for what nobody looks at. */
export interface DecisionObserver {
  /** Whether it wants to know how long the next decision takes: reading a clock twice costs more than counting. */
  readonly isTiming: boolean
  /** `durationMs` is below 0 where it was not measured. A peek is not told. */
  decided(decision: Decision, context: RequestContext, durationMs: number): void
  /** A call to the store failed, was too late, or was not tried. */
  storeFailed(error: unknown): void
}
