/** The destination of encoded commands. */
export interface BulkSink {
  /** True if enough commands are in flight or unsent. Call `flush` before the next record. */
  readonly isFull: boolean
  /** Accepts the last written command, which came from this line. */
  put(line: number): void
  /** Sends the accepted commands. Returns a promise if the sink is full; it resolves when there is room. */
  flush(): Promise<void> | undefined
  /** Sends the remaining commands. Resolves when all replies have arrived. */
  finish(): Promise<void>
  /** Called when the sink fails, so that a load that waits for input can stop. */
  onStop: (error: Error) => void
  /** The first line without a reply. */
  readonly unansweredLine: number | undefined
  close(): void
}

/** Waits for a condition that events change. Supports one pending wait at a time. */
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
      this.recheck()
    })
  }

  /** Checks the condition again. Call it whenever the condition may have changed. */
  recheck(): void {
    if (this.#resolve === undefined || !this.#isMet()) return
    this.#resolve()
    this.#resolve = undefined
  }

  /** Rejects the pending wait and all later ones. */
  fail(error: Error): void {
    this.#error ??= error
    this.#reject?.(this.#error)
    this.#resolve = undefined
  }
}
