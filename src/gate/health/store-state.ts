import type { Clock } from '../../core/clock.js'
import { FluxGateError, isStoreTrouble } from '../../core/errors.js'

/** A store counts as recovered only if no call has failed for this long: some calls may succeed while others fail. */
const calmMs = 250

/** The minimum time between two probes. A result is used for this long. */
const probeIntervalMs = 1_000

export interface StoreStateOptions {
  readonly clock: Clock
  /** Resolves if the store can decide. Without it, the state follows from decisions alone. */
  readonly probe?: (() => Promise<void>) | undefined
  /** The error of every call while there is no connection: a store that has none need not be probed. */
  readonly unreachable?: (() => unknown) | undefined
  /** False until the store has answered for the first time; an outage then began with the process. */
  readonly wasReached: () => boolean
  readonly onDown: (error: unknown) => void
  readonly onUp: () => void
}

/**
 * Whether the store can be used, since when, and why not. A failed decision marks it down at once. Only a probe marks it up
 * again: on a cluster, or with a read-only Redis, single decisions succeed during an outage.
 */
export class StoreState {
  readonly #options: StoreStateOptions
  #failedAt = Number.NEGATIVE_INFINITY
  #probedAt = Number.NEGATIVE_INFINITY
  #probing: Promise<void> | undefined
  #probeError: unknown
  #callError: unknown
  isDown = false
  sinceAt: number

  constructor(options: StoreStateOptions) {
    this.#options = options
    this.sinceAt = options.clock.now()
  }

  /** Why the store is down. The probe's error is preferred: calls may have failed for reasons that followed from the first. */
  get error(): unknown {
    return this.#probeError ?? this.#callError
  }

  /** To be called when a decision, or a reset, has failed. */
  failed(error: unknown): void {
    if (isBreakerOpen(error) && (this.isDown || this.#options.probe !== undefined)) {
      // The store was not called, so this is no evidence of its state.
      if (!this.isDown) void this.refresh()
      return
    }
    this.#failedAt = this.#options.clock.now()
    this.#callError = error
    this.#markDown(error)
  }

  /** To be called when a decision, or a reset, has been answered by the store. */
  answered(): void {
    if (!this.isDown || !this.#isCalm()) return
    if (this.#options.probe === undefined) this.#markUp()
    else void this.refresh()
  }

  /** Resolves when the state is at most a second old. Concurrent callers share one probe. Never rejects. */
  refresh(): Promise<void> {
    const { probe, clock, unreachable } = this.#options
    if (probe === undefined) return Promise.resolve()
    const error = unreachable?.()
    if (error !== undefined) {
      this.#probeError = error
      this.#markDown(error)
      return Promise.resolve()
    }
    if (this.#probing !== undefined) return this.#probing
    const now = clock.now()
    // A wall clock may step back, in which case the age is unknown.
    if (now >= this.#probedAt && now - this.#probedAt < probeIntervalMs) return Promise.resolve()
    this.#probedAt = now
    this.#probing = this.#probe(probe)
    return this.#probing
  }

  async #probe(probe: () => Promise<void>): Promise<void> {
    try {
      await probe()
      this.#probeSucceeded()
    } catch (error) {
      if (isStoreTrouble(error)) {
        this.#probeError = error
        this.#markDown(error)
      } else this.#probeSucceeded()
    } finally {
      this.#probing = undefined
    }
  }

  #probeSucceeded(): void {
    this.#probeError = undefined
    if (this.isDown && this.#isCalm()) this.#markUp()
  }

  #isCalm(): boolean {
    return this.#options.clock.now() - this.#failedAt >= calmMs
  }

  #markDown(error: unknown): void {
    if (this.isDown) return
    this.isDown = true
    if (this.#options.wasReached()) this.sinceAt = this.#options.clock.now()
    this.#options.onDown(error)
  }

  #markUp(): void {
    this.isDown = false
    this.sinceAt = this.#options.clock.now()
    this.#probeError = undefined
    this.#callError = undefined
    this.#options.onUp()
  }
}

const isBreakerOpen = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_STORE_OPEN'
