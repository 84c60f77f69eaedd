import type { BandDecision, Decision } from '../../decision.js'
import type { CheckOptions } from '../../handler.js'
import type { RequestContext } from '../../request-context.js'

/** One of several contexts that are decided together. */
export interface JointCheck {
  /** The properties of the request. */
  readonly context: RequestContext
  /**
   * Default 1. 0 charges nothing: the decision rejects if the rules of this context would reject one more request. A negative
   * number gives permits back if the decision is allowed.
   */
  readonly permits?: number | undefined
  /** A limit for this check only, on the same buckets. It replaces the bands of every rule that applies. */
  readonly limit?: CallLimit | undefined
}

/** At most `capacity` permits per window. */
export interface CallLimit {
  /** The number of permits per window. */
  readonly capacity: number
  /** The length of the window in milliseconds. */
  readonly windowMs: number
  /** The key to limit if no rule applies to the context. Without it, such a context is not limited. */
  readonly key?: string | undefined
}

/** Options of a joint decision. Permits are set for each context. */
export type JointOptions = Omit<CheckOptions, 'permits' | 'costs'>

/** The part of one context in a joint decision. */
export interface JointPart {
  /** True if the rules of this context allow it. The decision is allowed only if all parts are. */
  readonly allowed: boolean
  /** The deciding band of this context; null if no band limits it. */
  readonly band: BandDecision | null
}

/** The decision about several contexts: either all of them are charged, or none is. */
export interface JointDecision {
  /** The decision about all contexts; its deciding band is the most restrictive of all parts. */
  readonly decision: Decision
  /** In the order of the checks. */
  readonly parts: readonly JointPart[]
}
