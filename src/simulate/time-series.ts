/** What happened within one stretch of time. */
export interface TimeBucket {
  offered: number
  /** Granted on arrival, at once or with a delay. */
  admitted: number
  refused: number
  delayed: number
  /** Went on within this stretch: the admitted, moved by their delay. */
  released: number
  /** The most that went on in one window that ends within this stretch. */
  peak: number
}

/** Each width divides the next, so that joined buckets begin where one of their parts began. In ticks. */
const widths = [
  10, 100, 200, 1_000, 2_000, 10_000, 20_000, 100_000, 200_000, 1e6, 2e6, 10e6, 20e6, 60e6, 120e6, 600e6, 1_200e6,
  3_600e6, 7_200e6, 21_600e6, 43_200e6, 86_400e6, 172_800e6, 864_000e6, 8_640_000e6, 86_400_000e6,
]
const mostBuckets = 1_000

/**
 * Counts over time in bounded memory, without knowing beforehand how long it will take: when there are too many
 * buckets, neighbours are joined. Buckets begin at multiples of their width since the epoch, as windows do.
 */
export class TimeSeries {
  #widthIndex = 0
  #first: number
  #buckets: TimeBucket[] = []

  /** `startAt`, in ticks, is the earliest instant that will be asked for. */
  constructor(startAt: number) {
    this.#first = Math.floor(startAt / this.width)
  }

  get width(): number {
    return widths[this.#widthIndex] as number
  }

  /** The tick at which the first bucket begins. */
  get startAt(): number {
    return this.#first * this.width
  }

  get buckets(): readonly TimeBucket[] {
    return this.#buckets
  }

  /** The bucket of this instant. It may be joined with others by a later call, so it is not to be kept. */
  at(tick: number): TimeBucket {
    let index = Math.floor(tick / this.width) - this.#first
    while (index >= mostBuckets && this.#widthIndex < widths.length - 1) {
      this.#join()
      index = Math.floor(tick / this.width) - this.#first
    }
    while (this.#buckets.length <= index) this.#buckets.push(emptyBucket())
    return this.#buckets[index] as TimeBucket
  }

  /** Joins buckets until they are as wide as those of another series. */
  widenTo(width: number): void {
    while (this.width < width) this.#join()
  }

  #join(): void {
    const narrow = this.width
    const narrowFirst = this.#first
    this.#widthIndex += 1
    this.#first = Math.floor((narrowFirst * narrow) / this.width)
    const joined: TimeBucket[] = []
    this.#buckets.forEach((bucket, i) => {
      const index = Math.floor(((narrowFirst + i) * narrow) / this.width) - this.#first
      while (joined.length <= index) joined.push(emptyBucket())
      addTo(joined[index] as TimeBucket, bucket)
    })
    this.#buckets = joined
  }
}

const emptyBucket = (): TimeBucket => ({ offered: 0, admitted: 0, refused: 0, delayed: 0, released: 0, peak: 0 })

/** Counts add up; the peak of two stretches is the higher one. */
export function addTo(sum: TimeBucket, bucket: TimeBucket): void {
  sum.offered += bucket.offered
  sum.admitted += bucket.admitted
  sum.refused += bucket.refused
  sum.delayed += bucket.delayed
  sum.released += bucket.released
  sum.peak = Math.max(sum.peak, bucket.peak)
}
