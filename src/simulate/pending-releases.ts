/**
 * Future release times, the earliest first. They arrive in order for a single queue. With several rules, a request with a
 * short delay can overtake one with a long delay.
 */
export class PendingReleases {
  #times: number[] = []
  #head = 0

  add(at: number): void {
    let index = this.#times.length
    while (index > this.#head && (this.#times[index - 1] as number) > at) index -= 1
    if (index === this.#times.length) this.#times.push(at)
    else this.#times.splice(index, 0, at)
  }

  /** Removes and returns the earliest time if it is not after `until`. */
  takeUntil(until: number): number | undefined {
    const next = this.#times[this.#head]
    if (next === undefined || next > until) return undefined
    this.#head += 1
    // Frees the removed times in batches, so that the rest is not moved on every call.
    if (this.#head > 1_024 && this.#head * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#head)
      this.#head = 0
    }
    return next
  }
}
