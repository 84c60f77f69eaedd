/** A caller in this process that waits to be woken. A call that precedes `wait` is kept. */
export class Place {
  readonly channel: string
  readonly id: string
  /** Whether it is queued in Redis and woken by its id. */
  readonly fair: boolean
  #isCalled = false
  #wake = (): void => {}

  constructor(channel: string, id: string, fair: boolean) {
    this.channel = channel
    this.id = id
    this.fair = fair
  }

  get isCalled(): boolean {
    return this.#isCalled
  }

  call(): void {
    this.#isCalled = true
    this.#wake()
  }

  /** Resolves when called, after `ms`, or when the signal aborts. The result is whether it was called, and clears the call. */
  async wait(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (!this.#isCalled && !signal?.aborted) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, ms)
        signal?.addEventListener('abort', this.#wake)
      })
      clearTimeout(timer)
      signal?.removeEventListener('abort', this.#wake)
    }
    const wasCalled = this.#isCalled
    this.#isCalled = false
    return wasCalled
  }
}
