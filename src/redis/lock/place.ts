/** Where somebody of this process waits until it is called. A call that comes too early is kept. */
export class Place {
  readonly channel: string
  readonly id: string
  /** Stands in the line that Redis keeps, and is called by its id. */
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

  /** Resolves with whether it was called, which uses the call up; after so long, or when the signal aborts, in any case. */
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
