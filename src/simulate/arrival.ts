import type { RequestContext } from '../core/request-context.js'
import type { Costs } from '../core/rule.js'

/** One request on the virtual clock. */
export interface Arrival {
  /** In ticks (microseconds). Never decreases from one arrival to the next. */
  readonly at: number
  /** The properties of the request, as far as they were recorded. */
  readonly context?: RequestContext
  /** How long the request is in progress, in ticks. */
  readonly duration?: number
  /** Further costs by name. */
  readonly costs?: Costs
}

export type Arrivals = Iterable<Arrival> | AsyncIterable<Arrival>
