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
