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

const workMs = 6
const pauseMs = 1

/**
 * Regular pauses of a load that shares the server: 1 ms after every 6 ms of work. Even with few outstanding replies, a load
 * without pauses would occupy a CPU that other processes need.
 */
export class RegularPauses {
  readonly #now: () => number
  #endedAt: number

  constructor(now: () => number) {
    this.#now = now
    this.#endedAt = now()
  }

  /** Returns a promise that resolves after the pause, or `undefined` if no pause is due. */
  due(): Promise<void> | undefined {
    if (this.#now() - this.#endedAt < workMs) return undefined
    return new Promise((resolve) => {
      setTimeout(() => {
        this.#endedAt = this.#now()
        resolve()
      }, pauseMs)
    })
  }
}
