const workMs = 6
const breakMs = 1

/**
 * A gentle load leaves the machine and the server to others now and then, for a sixth of the time or more: however little is
 * outstanding, somebody who never pauses keeps a processor from those who have little to do.
 */
export class Breaks {
  readonly #now: () => number
  #endedAt: number

  constructor(now: () => number) {
    this.#now = now
    this.#endedAt = now()
  }

  /** Resolves after a break, if it is time for one. */
  due(): Promise<void> | undefined {
    if (this.#now() - this.#endedAt < workMs) return undefined
    return new Promise((resolve) => {
      setTimeout(() => {
        this.#endedAt = this.#now()
        resolve()
      }, breakMs)
    })
  }
}
