import type { BucketStore } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { FluxGateError, isStoreFailure } from '../../core/errors.js'

/** A store counts as recovered only if no call has failed for this long: some calls may succeed while others fail. */
const calmMs = 250

/** The minimum time between two probes. A result is used for this long. */
const probeIntervalMs = 1_000

export interface StoreStateOptions {
  readonly clock: Clock
  /** Resolves if the store can decide. Without a probe, the state depends on decisions only. */
  readonly probe?: (() => Promise<void>) | undefined
  /** Returns the error of all calls while there is no connection. The store is not probed then. */
  readonly unreachable?: (() => unknown) | undefined
  /** False until the store has responded for the first time. Until then, an outage began with the process. */
  readonly wasReached: () => boolean
  readonly onDown: (error: unknown) => void
  readonly onUp: () => void
}

/**
 * Tracks whether the store is available, since when, and why not. A failed decision marks it down immediately. Only a successful
 * probe marks it up again, because single decisions can succeed during an outage of a cluster or with a read-only Redis.
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

  /** The reason why the store is down. The probe's error takes precedence, because errors of calls may be secondary. */
  get error(): unknown {
    return this.#probeError ?? this.#callError
  }

  /** Must be called when a decision or reset has failed. */
  failed(error: unknown): void {
    if (isBreakerOpen(error) && (this.isDown || this.#options.probe !== undefined)) {
      // An open breaker does not show the state of the store, because the store was not called.
      if (!this.isDown) void this.refresh()
      return
    }
    this.#failedAt = this.#options.clock.now()
    this.#callError = error
    this.#markDown(error)
  }

  /** Must be called when the store has answered a decision or reset. */
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
    // If the wall clock has stepped back, the age of the last probe is unknown.
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
      if (isStoreFailure(error)) {
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

/** Decisions need the bucket generations as well as the buckets. */
export async function probeStore(store: BucketStore): Promise<void> {
  await store.availability?.probe?.()
  if (store.generations?.isKnown !== false) return
  throw new FluxGateError(
    'FLUXGATE_STORE_FAILED',
    'The bucket store is reachable, but its bucket generations have not been read yet.',
  )
}
