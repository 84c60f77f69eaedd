/** Where commands go once they are written. */
export interface BulkSink {
  /** Enough is under way, or waits to be sent: call `flush` before the next record. */
  readonly isFull: boolean
  /** The last command that was written came from this line. */
  put(line: number): void
  /** Sends what was written. If a promise is returned, there is room for more only once it is resolved. */
  flush(): Promise<void> | undefined
  /** Sends what is left; resolves when all of it has been answered. */
  finish(): Promise<void>
  /** Told when there will be no more, for whoever waits for something else meanwhile. */
  onStop: (error: Error) => void
  /** The first line without an answer. */
  readonly unansweredLine: number | undefined
  close(): void
}

/** Somebody who waits for a condition that changes with events; one at a time. */
export class Waiter {
  #resolve: (() => void) | undefined
  #reject: ((error: Error) => void) | undefined
  #isMet: () => boolean = () => true
  #error: Error | undefined

  get error(): Error | undefined {
    return this.#error
  }

  until(isMet: () => boolean): Promise<void> {
    if (this.#error !== undefined) return Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      this.#isMet = isMet
      this.#resolve = resolve
      this.#reject = reject
      this.look()
    })
  }

  /** To be called whenever the condition may have changed. */
  look(): void {
    if (this.#resolve === undefined || !this.#isMet()) return
    this.#resolve()
    this.#resolve = undefined
  }

  /** For whoever waits, now or later. */
  fail(error: Error): void {
    this.#error ??= error
    this.#reject?.(this.#error)
    this.#resolve = undefined
  }
}
