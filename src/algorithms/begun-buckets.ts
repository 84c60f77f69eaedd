import { type Buckets, newStep, type Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'

/**
 * Buckets with a starting balance: one that nobody has used is as if `spent` had been taken from it at its instant. So no
 * algorithm knows of balances, and one that has been refilled since means the same as none.
 */
export class BegunBuckets implements Buckets {
  readonly #buckets: Buckets
  /** Holds in its first slot what an unused bucket is. */
  readonly #unused: Buckets
  readonly #beginning = newStep().next
  readonly #endsAt: number
  readonly #isUsed: boolean[] = []

  /** `unused` is a place for one bucket more. */
  constructor(buckets: Buckets, unused: Buckets, band: Band, { permits, at }: NonNullable<Band['spent']>) {
    const step = newStep()
    unused.step(-1, band, permits, at, 0, step)
    this.#beginning.set(step.next)
    unused.write(0, step.next)
    this.#buckets = buckets
    this.#unused = unused
    this.#endsAt = unused.expiresAt(0, band)
  }

  step(slot: number, band: Band, permits: number, now: number, patience: number, out: Step): void {
    if (this.#isUsed[slot]) this.#buckets.step(slot, band, permits, now, patience, out)
    else this.#unused.step(0, band, permits, now, patience, out)
  }

  write(slot: number, next: Float64Array): void {
    this.#begin(slot)
    this.#buckets.write(slot, next)
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    this.#begin(slot)
    this.#buckets.refund(slot, band, permits, now, grantedAt)
  }

  /** Not before the balance itself would be full again: absence would bring it back. */
  expiresAt(slot: number, band: Band): number {
    return Math.max(this.#endsAt, this.#buckets.expiresAt(slot, band))
  }

  clear(slot: number): void {
    this.#isUsed[slot] = false
    this.#buckets.clear(slot)
  }

  #begin(slot: number): void {
    if (this.#isUsed[slot]) return
    this.#isUsed[slot] = true
    this.#buckets.write(slot, this.#beginning)
  }
}
