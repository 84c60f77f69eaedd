import { FluxGateError } from '../../core/errors.js'
import { within } from '../client/within.js'
import { type Claim, type Keeper, who } from './keeper.js'

/**
 * How long a lease may be relied on, counted from before it was asked for: not for all of it, because two clocks never
 * run equally fast.
 */
export const validityMs = (ttlMs: number): number => ttlMs - ttlMs / 100 - 2

export interface LeaseOptions {
  /** Whether it is prolonged for as long as it is held. */
  readonly watchdog: boolean
  /** How long one call may take. */
  readonly timeoutMs: number
  /** It is lost, or has been given back. */
  readonly onEnd: (lease: Lease) => void
}

/**
 * Time in which a hold may be relied on. It ends by the monotonic clock of this process, whether or not Redis answers,
 * and `signal` says so. Nothing here ever rejects behind the holder's back.
 */
export class Lease {
  readonly #keeper: Keeper
  readonly #options: LeaseOptions
  readonly #abort = new AbortController()
  #claim: Claim
  #endsAt: number
  #ending: NodeJS.Timeout | undefined
  #renewal: NodeJS.Timeout | undefined
  #released: Promise<boolean> | undefined

  /** `askedAt`: by `performance.now()`, before the grant was asked for. */
  constructor(keeper: Keeper, claim: Claim, askedAt: number, options: LeaseOptions) {
    this.#keeper = keeper
    this.#claim = claim
    this.#options = options
    this.#endsAt = askedAt + validityMs(claim.ttlMs)
    this.#rely()
    if (options.watchdog) this.#renewIn(claim.ttlMs / 3)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get remainingMs(): number {
    return this.isHeld ? this.#endsAt - performance.now() : 0
  }

  /** Also true to the clock where a timer is late, such as after a pause of the process. */
  get isHeld(): boolean {
    if (this.#released !== undefined) return false
    if (performance.now() >= this.#endsAt) this.#lose('its lease has ended')
    return !this.signal.aborted
  }

  /** Prolongs it now; false if it is lost. Rejects if that is not known. */
  async extend(ttlMs = this.#claim.ttlMs): Promise<boolean> {
    if (!this.isHeld) return false
    const claim = { ...this.#claim, ttlMs }
    const { timeoutMs } = this.#options
    const askedAt = performance.now()
    const isOurs = await within({ who, what: 'prolong a hold', timeoutMs }, () => this.#keeper.extend(claim))
    if (this.#released !== undefined) return false
    if (!isOurs) this.lose()
    if (!this.isHeld) return false
    this.#claim = claim
    this.#endsAt = Math.max(this.#endsAt, askedAt + validityMs(ttlMs))
    this.#rely()
    return true
  }

  /** What is known by other ways than by asking. */
  lose(): void {
    this.#lose('it was taken away, or Redis has forgotten it')
  }

  /** Once. True if it was held until now. What cannot be told to Redis ends there by itself. */
  release(): Promise<boolean> {
    this.#released ??= this.#giveBack(this.isHeld)
    return this.#released
  }

  async #giveBack(wasHeld: boolean): Promise<boolean> {
    this.#stop()
    const { timeoutMs } = this.#options
    const isOver = (): boolean => performance.now() >= this.#endsAt
    let isTold = false
    do {
      isTold = await within({ who, what: 'end a hold', timeoutMs }, () => this.#keeper.release(this.#claim)).then(
        () => true,
        () => false,
      )
      if (!isTold) await new Promise((resolve) => setTimeout(resolve, 25))
    } while (!isTold && !isOver())
    this.#options.onEnd(this)
    return wasHeld && isTold
  }

  #rely(): void {
    clearTimeout(this.#ending)
    this.#ending = setTimeout(() => this.#lose('its lease has ended'), this.#endsAt - performance.now())
  }

  #renewIn(ms: number): void {
    this.#renewal = setTimeout(async () => {
      const isHeld = await this.extend().catch(() => undefined)
      // Not known is not lost: there is time until the lease ends.
      if (this.isHeld) this.#renewIn(isHeld === undefined ? this.#claim.ttlMs / 20 : this.#claim.ttlMs / 3)
    }, ms)
  }

  #lose(why: string): void {
    if (this.#released !== undefined) return
    this.#stop()
    this.#options.onEnd(this)
    const names = this.#claim.names.map((name) => JSON.stringify(name)).join(', ')
    this.#abort.abort(new FluxGateError('FLUXGATE_LOCK_LOST', `The lock ${names} is no longer held: ${why}.`))
  }

  #stop(): void {
    clearTimeout(this.#ending)
    clearTimeout(this.#renewal)
  }
}
