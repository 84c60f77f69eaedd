import type { RequestContext } from '../core/request-context.js'

/** One request on the virtual clock. */
export interface Arrival {
  /** In ticks (microseconds); never before the arrival ahead of it. */
  readonly at: number
  /** Who asked for what, as far as the recording says. */
  readonly context?: RequestContext
}

export type Arrivals = Iterable<Arrival> | AsyncIterable<Arrival>
