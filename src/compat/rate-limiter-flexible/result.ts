/** The result of an operation: the points of a key in its current duration. */
export class RateLimiterRes {
  /** Points left in the current duration. */
  remainingPoints: number
  /** Milliseconds until the next action is possible. */
  msBeforeNext: number
  /** Points consumed in the current duration. */
  consumedPoints: number
  #isFirstInDuration = false

  constructor(remainingPoints = 0, msBeforeNext = 0, consumedPoints = 0, isFirstInDuration = false) {
    this.remainingPoints = remainingPoints
    this.msBeforeNext = msBeforeNext
    this.consumedPoints = consumedPoints
    this.isFirstInDuration = isFirstInDuration
  }

  /** True if the action started the current duration. */
  get isFirstInDuration(): boolean {
    return this.#isFirstInDuration
  }
  set isFirstInDuration(value: boolean) {
    this.#isFirstInDuration = Boolean(value)
  }

  /** Returns the four properties as an object. */
  toJSON(): Record<string, number | boolean> {
    const { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration } = this
    return { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration }
  }

  /** Returns the result as JSON. */
  toString(): string {
    return JSON.stringify(this)
  }
}
