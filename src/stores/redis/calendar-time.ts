/** Requests wait for at most a year, so no bucket is further ahead, unless the server's clock steps back. */
const maxAhead = 10 * 366 * 86_400_000_000

/** How long a correction of `ahead` is used. The lists of periods are long until then. */
const aheadTicks = 1_000_000

/**
 * The span of time for which the periods of calendar bands are sent. The server's clock selects the period; it may differ from
 * the clock of this process, and requests may wait for a later period. Both are known once a call has lacked a period.
 */
export class CalendarTime {
  /** The server's clock minus the clock of this process. */
  #offset = 0
  /** The ticks from the server's time to the latest time of a bucket. */
  #ahead = 0
  #correctedAt = Number.NEGATIVE_INFINITY

  span(localNow: number): { readonly from: number; readonly to: number } {
    const from = Math.max(0, localNow + this.#offset)
    const isCorrected = Math.abs(localNow - this.#correctedAt) <= aheadTicks
    return { from, to: isCorrected ? from + this.#ahead : from }
  }

  /** A call at `serverNow` lacked the period of `tick`. */
  correct(localNow: number, serverNow: number, tick: number): void {
    this.#offset = serverNow - localNow
    const isCorrected = Math.abs(localNow - this.#correctedAt) <= aheadTicks
    this.#ahead = Math.min(maxAhead, Math.max(isCorrected ? this.#ahead : 0, tick - serverNow))
    this.#correctedAt = localNow
  }
}
