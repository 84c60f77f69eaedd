import { ticksPerMs } from '../core/clock.js'
import { EventHeap } from './event-heap.js'
import { RecentCount } from './recent-count.js'
import { RequestsInProgress } from './requests-in-progress.js'
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
  /** The maximum of requests that were in progress at the same time, or null if their durations are unknown. */
  readonly mostInProgress: number | null
}

/** A request that was allowed, and is released at the tick `at`. */
interface Release {
  readonly at: number
  readonly duration: number | undefined
}

/** Records the outcomes of one limiter. Arrivals must be reported in order of time. */
export class Meter {
  readonly series: TimeSeries
  readonly #recent: RecentCount
  readonly #inProgress = new RequestsInProgress()
  readonly #limitsProgress: boolean
  readonly #pending = new EventHeap<Release>()
  #offered = 0
  #rejected = 0
  #delayed = 0
  #delaySum = 0
  #delayMax = 0
  #peak = 0
  #smallestGap = Number.POSITIVE_INFINITY
  #longestGap = Number.NEGATIVE_INFINITY
  #releasedAt: number | undefined
  #hasDurations = false
  #carriedTo: number

  /**
   * `startAt` and `window` are in ticks. With `limitsProgress`, the peaks of the series are those of requests in progress instead
   * of releases in a window.
   */
  constructor(startAt: number, window: number, limitsProgress = false) {
    this.series = new TimeSeries(startAt)
    this.#limitsProgress = limitsProgress
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

  /** `duration` is how long the request is in progress after its release, if that is known. */
  allowed(at: number, delay: number, duration?: number): void {
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
    if (delay > 0) this.#pending.add({ at: Math.round(at + delay), duration })
    else this.#release(at, duration)
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
      mostInProgress: this.#hasDurations ? this.#inProgress.most : null,
    }
  }

  /** With several rules, a request with a short delay can overtake one with a long delay. */
  #releaseUntil(until: number): void {
    for (let next = this.#pending.takeUntil(until); next !== undefined; next = this.#pending.takeUntil(until))
      this.#release(next.at, next.duration)
  }

  #release(at: number, duration: number | undefined): void {
    if (this.#releasedAt !== undefined) {
      this.#smallestGap = Math.min(this.#smallestGap, at - this.#releasedAt)
      this.#longestGap = Math.max(this.#longestGap, at - this.#releasedAt)
    }
    this.#releasedAt = at
    const bucket = this.series.at(at)
    this.#carry(at)
    bucket.released += 1
    const count = this.#recent.add(at)
    this.#peak = Math.max(this.#peak, count)
    if (duration !== undefined) {
      this.#hasDurations = true
      this.#inProgress.start(at, duration)
    }
    bucket.peak = Math.max(bucket.peak, this.#limitsProgress ? this.#inProgress.countAt(at) : count)
  }

  /** Sets the peak of buckets without releases to the number of requests that still count at their start. */
  #carry(until: number): void {
    const width = this.series.width
    const next = (Math.floor(this.#carriedTo / width) + 1) * width
    for (let edge = next; edge <= until; edge += width) {
      const held = this.#limitsProgress ? this.#inProgress.countAt(edge) : this.#recent.countAt(edge)
      const bucket = this.series.at(edge)
      bucket.peak = Math.max(bucket.peak, held)
    }
    this.#carriedTo = Math.max(this.#carriedTo, until)
  }
}
