import { FluxGateError } from '../../core/errors.js'
import { callBackend, type LockBackend, type LockRequest } from './backend.js'

/**
 * The part of a lease that may be relied on, counted from the time of the request. It is shorter than the lease, because
 * the clocks of this process and of Redis may drift apart.
 */
export const validityMs = (ttlMs: number): number => ttlMs - ttlMs / 100 - 2

export interface LeaseOptions {
  /** Whether the lease is extended automatically while held. */
  readonly watchdog: boolean
  /** The timeout of one call. */
  readonly timeoutMs: number
  /** Called when the lease is lost or released. */
  readonly onEnd: (lease: Lease) => void
}

/**
 * The time in which a hold may be relied on. It expires by the monotonic clock of this process, even if Redis does not
 * reply, and then `signal` aborts. Background work never causes an unhandled rejection.
 */
export class Lease {
  readonly #backend: LockBackend
  readonly #options: LeaseOptions
  readonly #abort = new AbortController()
  #request: LockRequest
  #endsAt: number
  #expiryTimer: NodeJS.Timeout | undefined
  #renewalTimer: NodeJS.Timeout | undefined
  #released: Promise<boolean> | undefined

  /** `requestedAt` is the `performance.now()` before the request was sent. */
  constructor(backend: LockBackend, request: LockRequest, requestedAt: number, options: LeaseOptions) {
    this.#backend = backend
    this.#request = request
    this.#options = options
    this.#endsAt = requestedAt + validityMs(request.ttlMs)
    this.#scheduleExpiry()
    if (options.watchdog) this.#renewIn(request.ttlMs / 3)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get remainingMs(): number {
    return this.isHeld ? this.#endsAt - performance.now() : 0
  }

  /** Compares the clock as well, because timers may be late, such as after the process was suspended. */
  get isHeld(): boolean {
    if (this.#released !== undefined) return false
    if (performance.now() >= this.#endsAt) this.#lose('its lease expired')
    return !this.signal.aborted
  }

  /** Extends the lease. Resolves with false if it is lost. Rejects if the outcome is unknown. */
  async extend(ttlMs = this.#request.ttlMs): Promise<boolean> {
    if (!this.isHeld) return false
    const request = { ...this.#request, ttlMs }
    const { timeoutMs } = this.#options
    const requestedAt = performance.now()
    const isExtended = await callBackend('be extended', timeoutMs, () => this.#backend.extend(request))
    if (this.#released !== undefined) return false
    if (!isExtended) this.lose()
    if (!this.isHeld) return false
    this.#request = request
    this.#endsAt = Math.max(this.#endsAt, requestedAt + validityMs(ttlMs))
    this.#scheduleExpiry()
    return true
  }

  /** Marks the lease as lost. */
  lose(): void {
    this.#lose('it was unlocked by force, or Redis lost it')
  }

  /**
   * Releases the lease once. Resolves with true if it was held until now. If Redis cannot be reached, the lock expires
   * there.
   */
  release(): Promise<boolean> {
    this.#released ??= this.#releaseNow(this.isHeld)
    return this.#released
  }

  async #releaseNow(wasHeld: boolean): Promise<boolean> {
    this.#stop()
    const { timeoutMs } = this.#options
    const hasExpired = (): boolean => performance.now() >= this.#endsAt
    let isReleased = false
    do {
      isReleased = await callBackend('be released', timeoutMs, () => this.#backend.release(this.#request)).then(
        () => true,
        () => false,
      )
      if (!isReleased) await new Promise((resolve) => setTimeout(resolve, 25))
    } while (!isReleased && !hasExpired())
    this.#options.onEnd(this)
    return wasHeld && isReleased
  }

  #scheduleExpiry(): void {
    clearTimeout(this.#expiryTimer)
    this.#expiryTimer = setTimeout(() => this.#lose('its lease expired'), this.#endsAt - performance.now())
  }

  #renewIn(ms: number): void {
    this.#renewalTimer = setTimeout(async () => {
      const isHeld = await this.extend().catch(() => undefined)
      // After an unknown outcome the lease may still be extended until it expires.
      if (this.isHeld) this.#renewIn(isHeld === undefined ? this.#request.ttlMs / 20 : this.#request.ttlMs / 3)
    }, ms)
  }

  #lose(why: string): void {
    if (this.#released !== undefined) return
    this.#stop()
    this.#options.onEnd(this)
    const names = this.#request.names.map((name) => JSON.stringify(name)).join(', ')
    this.#abort.abort(new FluxGateError('FLUXGATE_LOCK_LOST', `The lock ${names} is no longer held: ${why}.`))
  }

  #stop(): void {
    clearTimeout(this.#expiryTimer)
    clearTimeout(this.#renewalTimer)
  }
}
