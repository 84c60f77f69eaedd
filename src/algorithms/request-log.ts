/** The grants of one bucket as a step may see them. Times never decrease from the oldest to the newest. */
export interface RequestLog {
  /** When the log was last written to. */
  readonly seenAt: number
  /** The instant of the newest grant, or undefined when there is none. */
  readonly newestAt: number | undefined
  /** How many permits were granted later than `tick`. */
  grantedAfter(tick: number): number
  /** The instant of the `n`-th oldest permit granted later than `tick`, counting from 1. */
  nthAfter(tick: number, n: number): number
}

/** What happened: entries up to `forgetUntil` are over, then `permits` were granted at `at` (negative: taken back). */
export interface LogChange {
  readonly seenAt: number
  /** Added to all instants: not 0 only when time has stepped back. */
  readonly shift: number
  readonly forgetUntil: number
  readonly at: number
  readonly permits: number
}

/**
 * A growing ring of (instant, running total) pairs. Totals make both questions a binary search; permits of one instant
 * share an entry, so a thousand requests at once are one pair that counts a thousand.
 */
export class RingLog implements RequestLog {
  #ring = new Float64Array(8)
  #head = 0
  #size = 0
  /** Permits ever forgotten: the running total just before the oldest entry. */
  #base = 0
  #shift = 0
  seenAt = 0

  get newestAt(): number | undefined {
    return this.#size === 0 ? undefined : this.#timeAt(this.#size - 1)
  }

  grantedAfter(tick: number): number {
    return this.#total(this.#size) - this.#total(this.#firstAfter(tick))
  }

  nthAfter(tick: number, n: number): number {
    const target = this.#total(this.#firstAfter(tick)) + n
    return this.#timeAt(this.#search((i) => this.#total(i + 1) >= target))
  }

  apply({ seenAt, shift, forgetUntil, at, permits }: LogChange): void {
    this.#shift += shift
    this.seenAt = seenAt
    const over = this.#firstAfter(forgetUntil)
    this.#base = this.#total(over)
    this.#head = (this.#head + over) % this.#capacity
    this.#size -= over
    if (permits > 0) this.#append(at, permits)
    else if (permits < 0) this.#takeBack(at, -permits)
  }

  #append(at: number, permits: number): void {
    if (this.#size > 0 && this.#timeAt(this.#size - 1) === at) {
      this.#set(this.#size - 1, at, this.#total(this.#size) + permits)
      return
    }
    if (this.#size === this.#capacity) this.#grow()
    this.#size += 1
    this.#set(this.#size - 1, at, this.#total(this.#size - 1) + permits)
  }

  /** Takes back the newest permits granted at or before `at`; later grants keep their place. */
  #takeBack(at: number, permits: number): void {
    let index = this.#firstAfter(at)
    let left = permits
    while (index > 0 && left > 0) {
      index -= 1
      const taken = Math.min(left, this.#total(index + 1) - this.#total(index))
      for (let i = index; i < this.#size; i++) this.#set(i, this.#timeAt(i), this.#total(i + 1) - taken)
      left -= taken
    }
    while (this.#size > 0 && this.#total(this.#size) === this.#total(this.#size - 1)) this.#size -= 1
  }

  #firstAfter(tick: number): number {
    return this.#search((i) => this.#timeAt(i) > tick)
  }

  /** The first index for which `holds` is true, given that it stays true from there on. */
  #search(holds: (index: number) => boolean): number {
    let low = 0
    let high = this.#size
    while (low < high) {
      const middle = (low + high) >> 1
      if (holds(middle)) high = middle
      else low = middle + 1
    }
    return low
  }

  get #capacity(): number {
    return this.#ring.length / 2
  }

  #place(index: number): number {
    return ((this.#head + index) % this.#capacity) * 2
  }

  #timeAt(index: number): number {
    return (this.#ring[this.#place(index)] as number) + this.#shift
  }

  /** The running total of the first `count` entries. */
  #total(count: number): number {
    return count === 0 ? this.#base : (this.#ring[this.#place(count - 1) + 1] as number)
  }

  #set(index: number, at: number, total: number): void {
    const place = this.#place(index)
    this.#ring[place] = at - this.#shift
    this.#ring[place + 1] = total
  }

  #grow(): void {
    const larger = new Float64Array(this.#ring.length * 2)
    const front = this.#ring.subarray(this.#head * 2)
    larger.set(front)
    larger.set(this.#ring.subarray(0, this.#head * 2), front.length)
    this.#ring = larger
    this.#head = 0
  }
}
