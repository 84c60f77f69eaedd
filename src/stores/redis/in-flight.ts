/** Counts calls in flight, so that closing can wait for them. */
export class InFlight {
  #count = 0
  #onIdle: (() => void) | undefined

  begin(count: number): void {
    this.#count += count
  }

  end(count: number): void {
    this.#count -= count
    if (this.#count === 0) this.#onIdle?.()
  }

  /** Resolves when no call is in flight, or after `withinMs`. */
  idle(withinMs: number): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs)
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
