/** Short enough to be even, long enough that timers keep it. */
const stepMs = 10

/** So many records a second, and no burst to make up for time in which there were none. */
export class Pace {
  readonly #perMs: number
  readonly #now: () => number
  /** When the next record is due. */
  #dueAt: number

  constructor(perSecond: number, now: () => number) {
    this.#perMs = perSecond / 1_000
    this.#now = now
    this.#dueAt = now()
  }

  /** Counts one record; how long to wait before the next, 0 while that is too short to wait for. */
  take(): number {
    const now = this.#now()
    this.#dueAt = Math.max(this.#dueAt, now - stepMs) + 1 / this.#perMs
    const ahead = this.#dueAt - now
    return ahead >= stepMs ? ahead : 0
  }
}
