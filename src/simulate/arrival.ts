import type { RequestContext } from '../core/request-context.js'

/** One request on the virtual clock. */
export interface Arrival {
  /** In ticks (microseconds). Never decreases from one arrival to the next. */
  readonly at: number
  /** The properties of the request, as far as they were recorded. */
  readonly context?: RequestContext
}

export type Arrivals = Iterable<Arrival> | AsyncIterable<Arrival>
