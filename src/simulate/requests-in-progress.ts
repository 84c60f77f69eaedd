import { EventHeap } from './event-heap.js'

/** Counts the requests that are in progress at the same time. Times never decrease. */
export class RequestsInProgress {
  readonly #ends = new EventHeap<{ readonly at: number }>()
  #most = 0

  /** The maximum so far. */
  get most(): number {
    return this.#most
  }

  /** A request starts at the tick `at` and ends `duration` later. Returns the number of requests in progress. */
  start(at: number, duration: number): number {
    this.#endUntil(at)
    if (duration <= 0) return this.#ends.size
    this.#ends.add({ at: at + duration })
    this.#most = Math.max(this.#most, this.#ends.size)
    return this.#ends.size
  }

  countAt(tick: number): number {
    this.#endUntil(tick)
    return this.#ends.size
  }

  /** A request that ends at the tick at which another one starts has ended. */
  #endUntil(tick: number): void {
    while (this.#ends.takeUntil(tick) !== undefined);
  }
}
