/** Notices steps of the wall clock, which the servers use, against the monotonic clock, which the record uses. */
import { nowUs } from './history.js'

const everyMs = 50
/** A reading is exact only if nothing else ran at the same time. */
const longestReadUs = 100

export class ClockWatch {
  #least = Number.POSITIVE_INFINITY
  #most = Number.NEGATIVE_INFINITY
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#read()
    this.#timer = setInterval(() => this.#read(), everyMs).unref()
  }

  /** Epoch minus monotonic time in microseconds. `Date.now()` is rounded down to a millisecond. */
  stop(): { least: number; most: number } {
    clearInterval(this.#timer)
    return { least: this.#least, most: Math.max(this.#least, this.#most - 1_000) }
  }

  #read(): void {
    for (let attempt = 0; attempt < 20; attempt++) {
      const before = nowUs()
      const wall = Date.now() * 1_000
      const after = nowUs()
      if (after - before > longestReadUs) continue
      this.#least = Math.min(this.#least, wall - before)
      this.#most = Math.max(this.#most, wall + 1_000 - before)
      return
    }
  }
}
