/**
 * Counts the events in (t − window, t] exactly, for a `t` that never decreases. Events of the same tick share an entry, so
 * memory is bounded by the number of distinct ticks in one window.
 */
export class RecentCount {
  readonly #window: number
  #times = new Float64Array(16)
  #counts = new Float64Array(16)
  #head = 0
  #size = 0
  #total = 0

  constructor(window: number) {
    this.#window = window
  }

  /** Adds an event and returns the number of events in the window. */
  add(at: number): number {
    this.#expire(at - this.#window)
    const last = (this.#head + this.#size - 1) % this.#times.length
    if (this.#size > 0 && this.#times[last] === at) this.#counts[last] = (this.#counts[last] as number) + 1
    else this.#append(at)
    this.#total += 1
    return this.#total
  }

  countAt(tick: number): number {
    this.#expire(tick - this.#window)
    return this.#total
  }

  #expire(until: number): void {
    while (this.#size > 0 && (this.#times[this.#head] as number) <= until) {
      this.#total -= this.#counts[this.#head] as number
      this.#head = (this.#head + 1) % this.#times.length
      this.#size -= 1
    }
  }

  #append(at: number): void {
    if (this.#size === this.#times.length) this.#grow()
    const next = (this.#head + this.#size) % this.#times.length
    this.#times[next] = at
    this.#counts[next] = 1
    this.#size += 1
  }

  #grow(): void {
    this.#times = this.#unrolled(this.#times)
    this.#counts = this.#unrolled(this.#counts)
    this.#head = 0
  }

  #unrolled(ring: Float64Array): Float64Array<ArrayBuffer> {
    const larger = new Float64Array(ring.length * 2)
    larger.set(ring.subarray(this.#head))
    larger.set(ring.subarray(0, this.#head), ring.length - this.#head)
    return larger
  }
}
