import type { Clock } from '../clock.js'

/** Options of the circuit breaker in front of a store or server. */
export interface BreakerOptions {
  /** The number of consecutive failures that opens the breaker. Default 5. */
  readonly failures?: number
  /** The longest time between two probes while the breaker is open, in milliseconds. Default 500. */
  readonly openMs?: number
}

export type BreakerState = 'CLOSED' | 'OPEN' | 'HALF_OPEN'

/** Identifies one call that the breaker allowed: the number of failures that it had counted when the call started. */
export type Passage = number

/** The delay of the first probe after the breaker opens. Each further delay is twice as long, up to `openMs`. */
const firstProbeMs = 30

/**
 * Rejects calls to a failing service, and allows single probes to find out whether the service has recovered. HALF_OPEN is
 * derived: the breaker has been open for long enough that the next call may be a probe.
 *
 * Failures are counted per incident, not per call. A call that started before the last counted failure was in flight during
 * that incident, so its own failure is not counted again: one lost connection is one failure, however many calls it affects.
 */
export class CircuitBreaker {
  readonly #failures: number
  readonly #openMs: number
  readonly #clock: Clock
  readonly #quietMs: number
  #counted: Passage = 0
  #consecutive = 0
  #succeededAt = Number.NEGATIVE_INFINITY
  #openedAt: number | undefined
  #probeAfterMs = 0
  #isProbing = false

  /** The breaker opens only if no call has succeeded for `quietMs`. In a cluster, a single node can fail while the others work. */
  constructor({ failures = 5, openMs = 500 }: BreakerOptions, clock: Clock, quietMs = 0) {
    this.#quietMs = quietMs
    this.#failures = failures
    this.#openMs = openMs
    this.#clock = clock
  }

  get state(): BreakerState {
    if (this.#openedAt === undefined) return 'CLOSED'
    const openForMs = this.#clock.now() - this.#openedAt
    // If the clock has stepped back, the elapsed time is unknown and a probe is allowed.
    return openForMs >= this.#probeAfterMs || openForMs < 0 ? 'HALF_OPEN' : 'OPEN'
  }

  /** Returns undefined if the call is not allowed now. While the breaker is half-open, only one call is allowed at a time. */
  enter(): Passage | undefined {
    if (this.#openedAt !== undefined) {
      if (this.#isProbing || this.state === 'OPEN') return undefined
      this.#isProbing = true
    }
    return this.#counted
  }

  succeeded(): void {
    if (this.#quietMs > 0) this.#succeededAt = this.#clock.now()
    this.#consecutive = 0
    this.#openedAt = undefined
    this.#isProbing = false
  }

  failed(passage: Passage): void {
    if (passage !== this.#counted) return
    this.#counted += 1
    this.#consecutive += 1
    this.#isProbing = false
    const now = this.#clock.now()
    if (this.#openedAt !== undefined) this.#open(now, this.#probeAfterMs * 2)
    else if (this.#consecutive >= this.#failures && now - this.#succeededAt >= this.#quietMs)
      this.#open(now, firstProbeMs)
  }

  /** Ends a call that was never sent. It counts neither as a success nor as a failure. */
  abandoned(passage: Passage): void {
    if (passage === this.#counted) this.#isProbing = false
  }

  #open(now: number, probeAfterMs: number): void {
    this.#openedAt = now
    this.#probeAfterMs = Math.min(probeAfterMs, this.#openMs)
  }
}
