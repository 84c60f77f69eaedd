/** The counts of one interval of time. */
export interface TimeBucket {
  offered: number
  /** Requests that arrived in this interval and were allowed, with or without a delay. */
  allowed: number
  rejected: number
  delayed: number
  /** Allowed requests whose release, after their delay, is in this interval. */
  released: number
  /** The maximum of releases in one window that ends in this interval. */
  peak: number
}

/** Bucket widths in ticks. Each divides the next, so that a merged bucket starts at the start of a narrower one. */
const widths = [
  10, 100, 200, 1_000, 2_000, 10_000, 20_000, 100_000, 200_000, 1e6, 2e6, 10e6, 20e6, 60e6, 120e6, 600e6, 1_200e6,
  3_600e6, 7_200e6, 21_600e6, 43_200e6, 86_400e6, 172_800e6, 864_000e6, 8_640_000e6, 86_400_000e6,
]
const maxBuckets = 1_000

/**
 * Counts over time in bounded memory, for an unknown duration. If there are too many buckets, neighbours are merged. Buckets
 * start at multiples of their width since the epoch, as windows do.
 */
export class TimeSeries {
  #widthIndex = 0
  #first: number
  #buckets: TimeBucket[] = []

  /** `startAt` is the earliest tick that will be used. */
  constructor(startAt: number) {
    this.#first = Math.floor(startAt / this.width)
  }

  get width(): number {
    return widths[this.#widthIndex] as number
  }

  /** The start of the first bucket in ticks. */
  get startAt(): number {
    return this.#first * this.width
  }

  get buckets(): readonly TimeBucket[] {
    return this.#buckets
  }

  /** The bucket that contains the tick. Do not keep it, because a later call may merge it with others. */
  at(tick: number): TimeBucket {
    let index = Math.floor(tick / this.width) - this.#first
    while (index >= maxBuckets && this.#widthIndex < widths.length - 1) {
      this.#merge()
      index = Math.floor(tick / this.width) - this.#first
    }
    while (this.#buckets.length <= index) this.#buckets.push(emptyBucket())
    return this.#buckets[index] as TimeBucket
  }

  /** Merges buckets until they have at least the given width. */
  widenTo(width: number): void {
    while (this.width < width) this.#merge()
  }

  #merge(): void {
    const narrow = this.width
    const narrowFirst = this.#first
    this.#widthIndex += 1
    this.#first = Math.floor((narrowFirst * narrow) / this.width)
    const merged: TimeBucket[] = []
    this.#buckets.forEach((bucket, i) => {
      const index = Math.floor(((narrowFirst + i) * narrow) / this.width) - this.#first
      while (merged.length <= index) merged.push(emptyBucket())
      addTo(merged[index] as TimeBucket, bucket)
    })
    this.#buckets = merged
  }
}

const emptyBucket = (): TimeBucket => ({ offered: 0, allowed: 0, rejected: 0, delayed: 0, released: 0, peak: 0 })

/** Adds the counts of a bucket to `sum`. The peak is the higher of both. */
export function addTo(sum: TimeBucket, bucket: TimeBucket): void {
  sum.offered += bucket.offered
  sum.allowed += bucket.allowed
  sum.rejected += bucket.rejected
  sum.delayed += bucket.delayed
  sum.released += bucket.released
  sum.peak = Math.max(sum.peak, bucket.peak)
}
