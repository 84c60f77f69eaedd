import { ticksPerMs } from '../core/clock.js'
import { RecentCount } from './recent-count.js'
import { TimeSeries } from './time-series.js'

/** The number of requests by outcome, and statistics of their releases and delays. */
export interface Totals {
  /** All requests. */
  readonly offered: number
  /** Allowed requests. */
  readonly allowed: number
  /** Rejected requests. */
  readonly rejected: number
  /** Requests that were allowed after a delay. */
  readonly delayed: number
  /** The exact maximum of requests that were released in any interval (t − window, t]. */
  readonly mostInAnyWindow: number
  /** The shortest time between two releases, or null with fewer than two. */
  readonly smallestGapMs: number | null
  /** The longest time between two releases, or null with fewer than two. */
  readonly longestGapMs: number | null
  /** The mean over all allowed requests. */
  readonly meanDelayMs: number
  readonly maxDelayMs: number
}

/** Records the outcomes of one limiter. Arrivals must be reported in order of time. */
export class Meter {
  readonly series: TimeSeries
  readonly #recent: RecentCount
  readonly #pending = new PendingReleases()
  #offered = 0
  #rejected = 0
  #delayed = 0
  #delaySum = 0
  #delayMax = 0
  #peak = 0
  #smallestGap = Number.POSITIVE_INFINITY
  #longestGap = Number.NEGATIVE_INFINITY
  #releasedAt: number | undefined
  #carriedTo: number

  /** `startAt` and `window` are in ticks. */
  constructor(startAt: number, window: number) {
    this.series = new TimeSeries(startAt)
    this.#recent = new RecentCount(window)
    this.#carriedTo = startAt
  }

  rejected(at: number): void {
    const bucket = this.series.at(at)
    bucket.offered += 1
    bucket.rejected += 1
    this.#offered += 1
    this.#rejected += 1
  }

  allowed(at: number, delay: number): void {
    const bucket = this.series.at(at)
    bucket.offered += 1
    bucket.allowed += 1
    this.#offered += 1
    if (delay > 0) {
      bucket.delayed += 1
      this.#delayed += 1
      this.#delaySum += delay
      this.#delayMax = Math.max(this.#delayMax, delay)
    }
    this.#releaseUntil(at)
    // Rounded to whole ticks, because fractions such as a third of a window are not exact.
    if (delay > 0) this.#pending.add(Math.round(at + delay))
    else this.#release(at)
  }

  /** Advances the time to `until` without further arrivals. */
  finish(until: number): void {
    this.#releaseUntil(Number.POSITIVE_INFINITY)
    this.series.at(until)
    this.#carry(until)
  }

  totals(): Totals {
    const allowed = this.#offered - this.#rejected
    return {
      offered: this.#offered,
      allowed,
      rejected: this.#rejected,
      delayed: this.#delayed,
      mostInAnyWindow: this.#peak,
      smallestGapMs: Number.isFinite(this.#smallestGap) ? this.#smallestGap / ticksPerMs : null,
      longestGapMs: Number.isFinite(this.#longestGap) ? this.#longestGap / ticksPerMs : null,
      meanDelayMs: allowed === 0 ? 0 : Math.round(this.#delaySum / allowed) / ticksPerMs,
      maxDelayMs: Math.round(this.#delayMax) / ticksPerMs,
    }
  }

  #releaseUntil(until: number): void {
    for (let at = this.#pending.takeUntil(until); at !== undefined; at = this.#pending.takeUntil(until))
      this.#release(at)
  }

  #release(at: number): void {
    if (this.#releasedAt !== undefined) {
      this.#smallestGap = Math.min(this.#smallestGap, at - this.#releasedAt)
      this.#longestGap = Math.max(this.#longestGap, at - this.#releasedAt)
    }
    this.#releasedAt = at
    const bucket = this.series.at(at)
    this.#carry(at)
    bucket.released += 1
    const count = this.#recent.add(at)
    bucket.peak = Math.max(bucket.peak, count)
    this.#peak = Math.max(this.#peak, count)
  }

  /** Sets the peak of buckets without releases to the number of requests that are still in the window at their start. */
  #carry(until: number): void {
    const width = this.series.width
    const next = (Math.floor(this.#carriedTo / width) + 1) * width
    for (let edge = next; edge <= until; edge += width) {
      const held = this.#recent.countAt(edge)
      const bucket = this.series.at(edge)
      bucket.peak = Math.max(bucket.peak, held)
    }
    this.#carriedTo = Math.max(this.#carriedTo, until)
  }
}

/**
 * Future release times, the earliest first. They arrive in order for a single queue. With several rules, a request with a
 * short delay can overtake one with a long delay.
 */
class PendingReleases {
  #times: number[] = []
  #head = 0

  add(at: number): void {
    let index = this.#times.length
    while (index > this.#head && (this.#times[index - 1] as number) > at) index -= 1
    if (index === this.#times.length) this.#times.push(at)
    else this.#times.splice(index, 0, at)
  }

  /** Removes and returns the earliest time if it is not after `until`. */
  takeUntil(until: number): number | undefined {
    const next = this.#times[this.#head]
    if (next === undefined || next > until) return undefined
    this.#head += 1
    // Frees the removed times in batches, so that the rest is not moved on every call.
    if (this.#head > 1_024 && this.#head * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#head)
      this.#head = 0
    }
    return next
  }
}
