import type { Clock } from './clock.js'

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
  readonly #quietMs: number
  #inARow = 0
  #succeededAt = Number.NEGATIVE_INFINITY
  #openedAt: number | undefined
  #trying = false

  /** `quietMs`: it opens only if nothing has succeeded for so long, because then it is not just a part that fails. */
  constructor({ failures = 5, openMs = 1_000 }: BreakerOptions, clock: Clock, quietMs = 0) {
    this.#quietMs = quietMs
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
    if (this.#quietMs > 0) this.#succeededAt = this.#clock.now()
    this.#inARow = 0
    this.#openedAt = undefined
    this.#trying = false
  }

  failed(): void {
    this.#inARow += 1
    this.#trying = false
    if (this.#openedAt === undefined && this.#inARow < this.#failures) return
    const now = this.#clock.now()
    if (this.#openedAt !== undefined || now - this.#succeededAt >= this.#quietMs) this.#openedAt = now
  }
}
