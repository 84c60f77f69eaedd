import type { Clock } from '../clock.js'

export interface BreakerOptions {
  /** Consecutive failures that open the breaker; default 5. */
  readonly failures?: number
  /** The longest time between two probes while the breaker is open; default 500. */
  readonly openMs?: number
}

export type BreakerState = 'CLOSED' | 'OPEN' | 'HALF_OPEN'

/** Identifies one call that the breaker let through: the number of failures it had counted when the call began. */
export type Passage = number

/** The first probe follows this soon after the breaker opens; each further one waits twice as long, up to `openMs`. */
const firstProbeMs = 30

/**
 * Stops calls to a service that keeps failing, and lets a single one through now and then to find out whether the service
 * has recovered. HALF_OPEN is derived: the breaker has been open for long enough and no probe is pending.
 *
 * Failures count by incident, not by call. A call that began before the last counted failure was pending when the service
 * failed, and its own failure says nothing new: one lost connection is one failure, however many calls were in flight.
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

  /** With `quietMs`, it opens only if no call has succeeded for that long: on a cluster, a single node may fail. */
  constructor({ failures = 5, openMs = 500 }: BreakerOptions, clock: Clock, quietMs = 0) {
    this.#quietMs = quietMs
    this.#failures = failures
    this.#openMs = openMs
    this.#clock = clock
  }

  get state(): BreakerState {
    if (this.#openedAt === undefined) return 'CLOSED'
    const openForMs = this.#clock.now() - this.#openedAt
    // If the clock has stepped back, the time is unknown and a probe is allowed.
    return openForMs >= this.#probeAfterMs || openForMs < 0 ? 'HALF_OPEN' : 'OPEN'
  }

  /** Undefined if the call must not be made now. While half-open, only one call may be made at a time. */
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

  /** The call was never sent, so it says nothing about the service. */
  abandoned(passage: Passage): void {
    if (passage === this.#counted) this.#isProbing = false
  }

  #open(now: number, probeAfterMs: number): void {
    this.#openedAt = now
    this.#probeAfterMs = Math.min(probeAfterMs, this.#openMs)
  }
}
