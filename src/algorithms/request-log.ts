/** Read access to the grants of one bucket. Times never decrease from the oldest to the newest grant. */
export interface RequestLog {
  /** The tick of the last write. */
  readonly seenAt: number
  /** The tick of the newest grant, or undefined for an empty log. */
  readonly newestAt: number | undefined
  /** The number of permits granted later than `tick`. */
  grantedAfter(tick: number): number
  /** The tick of the `n`-th oldest permit granted later than `tick`, counting from 1. */
  nthAfter(tick: number, n: number): number
}

/** Removes entries up to `forgetUntil`, and then adds `permits` granted at `at`, or removes them if negative. */
export interface LogChange {
  readonly seenAt: number
  /** Is added to all ticks. Not 0 only if the clock has stepped back. */
  readonly shift: number
  readonly forgetUntil: number
  readonly at: number
  readonly permits: number
}

/** How the entries of a log are converted. */
export interface LogConversion {
  readonly seenAt: number
  readonly forgetUntil: number
  readonly tickOf: (tick: number) => number
  readonly permitsOf: (permits: number) => number
}

/**
 * A growing ring buffer of (tick, running total) pairs. Running totals make both queries a binary search. Permits of the same
 * tick share an entry.
 */
export class RingLog implements RequestLog {
  #ring = new Float64Array(8)
  #head = 0
  #size = 0
  /** The running total before the oldest entry: all permits that were removed so far. */
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
    const expired = this.#firstAfter(forgetUntil)
    this.#base = this.#total(expired)
    this.#head = (this.#head + expired) % this.#capacity
    this.#size -= expired
    if (permits > 0) this.#append(at, permits)
    else if (permits < 0) this.#takeBack(at, -permits)
  }

  /**
   * Returns a log with other ticks and permits, without the entries up to `forgetUntil`. `permitsOf` converts the permits of an
   * entry and all newer ones together, so that rounding never adds up.
   */
  converted({ seenAt, forgetUntil, tickOf, permitsOf }: LogConversion): RingLog {
    const log = new RingLog()
    log.seenAt = seenAt
    const total = this.#total(this.#size)
    for (let index = this.#firstAfter(forgetUntil); index < this.#size; index++) {
      const permits = permitsOf(total - this.#total(index)) - permitsOf(total - this.#total(index + 1))
      if (permits > 0) log.#append(tickOf(this.#timeAt(index)), permits)
    }
    return log
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

  /** Removes the newest permits granted at or before `at`. Later grants stay. */
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

  /** The first index for which `holds` is true. It must be true for all later indexes. */
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

  #offset(index: number): number {
    return ((this.#head + index) % this.#capacity) * 2
  }

  #timeAt(index: number): number {
    return (this.#ring[this.#offset(index)] as number) + this.#shift
  }

  /** The running total of the first `count` entries. */
  #total(count: number): number {
    return count === 0 ? this.#base : (this.#ring[this.#offset(count - 1) + 1] as number)
  }

  #set(index: number, at: number, total: number): void {
    const offset = this.#offset(index)
    this.#ring[offset] = at - this.#shift
    this.#ring[offset + 1] = total
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
