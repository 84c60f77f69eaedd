import type { Clock } from '../core/clock.js'

export interface BreakerOptions {
  /** So many failures in a row open it; default 5. */
  readonly failures?: number
  /** How long it stays open before one call may try again; default 1000. */
  readonly openMs?: number
}

export type BreakerState = 'CLOSED' | 'OPEN' | 'HALF_OPEN'

/**
 * Keeps calls away from something that keeps failing, and lets a single one through now and then to see whether it is
 * back. Half-open is not stored: it is being open for long enough with nobody trying yet.
 */
export class CircuitBreaker {
  readonly #failures: number
  readonly #openMs: number
  readonly #clock: Clock
  #inARow = 0
  #openedAt: number | undefined
  #trying = false

  constructor({ failures = 5, openMs = 1_000 }: BreakerOptions, clock: Clock) {
    this.#failures = failures
    this.#openMs = openMs
    this.#clock = clock
  }

  get state(): BreakerState {
    if (this.#openedAt === undefined) return 'CLOSED'
    const openForMs = this.#clock.now() - this.#openedAt
    // A clock that has stepped back does not say for how long; then one call may try.
    return openForMs >= this.#openMs || openForMs < 0 ? 'HALF_OPEN' : 'OPEN'
  }

  /** Whether a call may go through now. In half-open, only the first one that asks. */
  enter(): boolean {
    if (this.#openedAt === undefined) return true
    if (this.#trying || this.state === 'OPEN') return false
    this.#trying = true
    return true
  }

  succeeded(): void {
    this.#inARow = 0
    this.#openedAt = undefined
    this.#trying = false
  }

  failed(): void {
    this.#inARow += 1
    this.#trying = false
    if (this.#openedAt !== undefined || this.#inARow >= this.#failures) this.#openedAt = this.#clock.now()
  }
}
