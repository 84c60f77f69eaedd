/** The shortest wait: short enough for an even rate, long enough for timers to be accurate. */
const stepMs = 10

/** Limits the number of records per second. Idle time is not made up for by a burst. */
export class RecordRate {
  readonly #perMs: number
  readonly #now: () => number
  /** The time of the next record. */
  #dueAt: number

  constructor(perSecond: number, now: () => number) {
    this.#perMs = perSecond / 1_000
    this.#now = now
    this.#dueAt = now()
  }

  /** Counts one record. Returns the wait before the next one in milliseconds, or 0 while it is below `stepMs`. */
  take(): number {
    const now = this.#now()
    this.#dueAt = Math.max(this.#dueAt, now - stepMs) + 1 / this.#perMs
    const ahead = this.#dueAt - now
    return ahead >= stepMs ? ahead : 0
  }
}
