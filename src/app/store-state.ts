import type { Clock } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'

/** How long nothing may have failed before the store counts as recovered. */
const calmMs = 250

/** Whether the store can be asked, since when that is so, and what went wrong. */
export class StoreState {
  readonly #clock: Clock
  #failedAt = 0
  isDown = false
  sinceAt: number
  error: unknown = null

  constructor(clock: Clock) {
    this.#clock = clock
    this.sinceAt = clock.now()
  }

  /** Whether it is the first failure after all was well. */
  failed(error: unknown): boolean {
    // That it was not asked says less than what went wrong when it was.
    if (this.isDown && error instanceof FluxGateError && error.code === 'FLUXGATE_STORE_OPEN') return false
    const isNews = !this.isDown
    this.#failedAt = this.#clock.now()
    if (isNews) this.sinceAt = this.#failedAt
    this.isDown = true
    this.error = error
    return isNews
  }

  /** Whether it has come back with this. Some calls may succeed while others fail: on a cluster, or where Redis only reads. */
  answered(): boolean {
    if (!this.isDown) return false
    const now = this.#clock.now()
    if (now - this.#failedAt < calmMs) return false
    this.isDown = false
    this.sinceAt = now
    this.error = null
    return true
  }
}
