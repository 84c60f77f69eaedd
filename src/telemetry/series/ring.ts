import { durationBounds } from '../duration-histogram.js'

/** The numbers of one interval: five counts, then the histogram of durations. */
export const countNames = ['allowed', 'delayed', 'denied', 'shadowDenied', 'degraded'] as const
const durationCount = durationBounds.length + 1
export const rowLength = countNames.length + durationCount

export interface Resolution {
  readonly stepMs: number
  /** The number of intervals that are kept. */
  readonly size: number
}

export const resolutions = {
  '1s': { stepMs: 1_000, size: 15 * 60 },
  '1m': { stepMs: 60_000, size: 24 * 60 },
} as const satisfies Record<string, Resolution>

export type ResolutionName = keyof typeof resolutions

/** Counts by interval in fixed memory. An interval is identified by its start divided by `stepMs`. */
export class Ring {
  readonly resolution: Resolution
  readonly #numbers: Uint32Array
  /** The newest interval; -1 before the first. */
  #newest = -1

  constructor(resolution: Resolution) {
    this.resolution = resolution
    this.#numbers = new Uint32Array(resolution.size * rowLength)
  }

  /** Adds numbers to an interval. Intervals that are too old are ignored. */
  add(interval: number, numbers: ArrayLike<number>): void {
    const { size } = this.resolution
    this.#advance(interval)
    if (interval <= this.#newest - size) return
    const start = (interval % size) * rowLength
    for (let i = 0; i < rowLength; i++) (this.#numbers[start + i] as number) += numbers[i] as number
  }

  /** The numbers of an interval; zeros if it is not kept. */
  read(interval: number): readonly number[] {
    const { size } = this.resolution
    if (interval > this.#newest || interval <= this.#newest - size || interval < 0) return zeros
    const start = (interval % size) * rowLength
    return Array.from(this.#numbers.subarray(start, start + rowLength))
  }

  /** Clears the intervals between the newest and the given one, whose memory is used again. */
  #advance(interval: number): void {
    if (interval <= this.#newest) return
    const { size } = this.resolution
    const first = Math.max(this.#newest + 1, interval - size + 1)
    for (let one = first; one <= interval; one++) {
      const start = (one % size) * rowLength
      this.#numbers.fill(0, start, start + rowLength)
    }
    this.#newest = interval
  }
}

const zeros: readonly number[] = Object.freeze(new Array(rowLength).fill(0))
