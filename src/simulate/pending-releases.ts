/**
 * Instants that are still to come, earliest first. Behind one queue they come in order; behind several rules a request
 * with a short delay overtakes one with a long delay.
 */
export class PendingReleases {
  #times: number[] = []
  #head = 0

  add(at: number): void {
    let place = this.#times.length
    while (place > this.#head && (this.#times[place - 1] as number) > at) place -= 1
    if (place === this.#times.length) this.#times.push(at)
    else this.#times.splice(place, 0, at)
  }

  /** Takes out the earliest instant if it is not after `until`. */
  takeUntil(until: number): number | undefined {
    const next = this.#times[this.#head]
    if (next === undefined || next > until) return undefined
    this.#head += 1
    // Now and then, so that what was taken is let go without moving the rest each time.
    if (this.#head > 1_024 && this.#head * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#head)
      this.#head = 0
    }
    return next
  }
}
