import { type Buckets, newStep, type Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'

/**
 * Buckets with a starting balance. An unused bucket behaves as if the permits of the balance had been taken from it at the
 * given time. Algorithms need not know about balances, and a balance that has been refilled since has no effect.
 */
export class StartingBuckets implements Buckets {
  readonly #buckets: Buckets
  /** Holds the state of an unused bucket in its first slot. */
  readonly #unused: Buckets
  readonly #initialState = newStep().next
  #refilledAt = 0
  readonly #isUsed: boolean[] = []

  /** `unused` must have room for one bucket. */
  constructor(buckets: Buckets, unused: Buckets, band: Band) {
    this.#buckets = buckets
    this.#unused = unused
    this.bind(band)
  }

  bind(band: Band, definition?: Band): void {
    this.#buckets.bind?.(band, definition)
    this.#unused.bind?.(band)
    const { permits = 0, at = 0 } = band.spent ?? {}
    const step = newStep()
    this.#unused.step(-1, band, permits, at, 0, step)
    this.#initialState.set(step.next)
    this.#unused.clear(0)
    this.#unused.write(0, step.next)
    this.#refilledAt = this.#unused.expiresAt(0, band)
  }

  rebase(slot: number, band: Band, now: number): void {
    if (this.#isUsed[slot]) this.#buckets.rebase?.(slot, band, now)
  }

  step(slot: number, band: Band, permits: number, now: number, maxWaitTicks: number, out: Step): void {
    if (this.#isUsed[slot]) this.#buckets.step(slot, band, permits, now, maxWaitTicks, out)
    else this.#unused.step(0, band, permits, now, maxWaitTicks, out)
  }

  write(slot: number, next: Float64Array): void {
    this.#initialise(slot)
    this.#buckets.write(slot, next)
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    this.#initialise(slot)
    this.#buckets.refund(slot, band, permits, now, grantedAt)
  }

  force(slot: number, band: Band, permits: number, now: number): void {
    this.#initialise(slot)
    this.#buckets.force(slot, band, permits, now)
  }

  /** Not before the starting balance has been refilled, because removing the bucket would apply the balance again. */
  expiresAt(slot: number, band: Band): number {
    return Math.max(this.#refilledAt, this.#buckets.expiresAt(slot, band))
  }

  clear(slot: number): void {
    this.#isUsed[slot] = false
    this.#buckets.clear(slot)
  }

  #initialise(slot: number): void {
    if (this.#isUsed[slot]) return
    this.#isUsed[slot] = true
    this.#buckets.write(slot, this.#initialState)
  }
}
