import type { CheckOptions } from '../core/handler.js'
import type { Departure } from '../core/waiting/waiting-room.js'
import type { EdgeRequest } from './edge-request.js'

/** The options of checks that nobody waits for, and what the handler says about the last one. */
export class Check implements CheckOptions {
  readonly ruleSetId: string | undefined
  readonly permits: number | undefined
  /** Epoch milliseconds, by the clock of who decided; undefined if the handler did not say. */
  decidedAt: number | undefined = undefined

  constructor(ruleSetId: string | undefined, permits: number | undefined) {
    this.ruleSetId = ruleSetId
    this.permits = permits
  }

  onDecided(atMs: number): void {
    this.decidedAt = atMs
  }
}

/**
 * The options of one check, and what becomes of its request if it has to wait. Nearly every request has one, so nothing is
 * made for it before it has to wait: its functions are those of the class, and what would be private costs more than the
 * decision.
 */
export class Stay extends Check {
  readonly stays: Stays
  readonly request: EdgeRequest
  /** How the waiting ended; undefined if the handler did not have the request wait. */
  left: Promise<Departure> | undefined = undefined
  leave: ((how: Departure) => void) | undefined = undefined
  /** Present once the request may have to wait. */
  leaving: AbortController | undefined = undefined
  isSentAway = false

  constructor(stays: Stays, request: EdgeRequest, ruleSetId: string | undefined, permits: number | undefined) {
    super(ruleSetId, permits)
    this.stays = stays
    this.request = request
  }

  /** Aborts when the client is gone, and when everybody is sent away. */
  signal(): AbortSignal {
    if (this.leaving === undefined) {
      this.leaving = new AbortController()
      this.stays.expectWait(this, this.leaving)
    }
    return this.leaving.signal
  }

  onEnter(): void {
    this.left = new Promise((resolve) => {
      this.leave = resolve
    })
  }

  onLeave(how: Departure): void {
    this.leave?.(how)
  }

  /** For handlers of others, who may take the functions from the options. */
  asOptions(): CheckOptions {
    return {
      ruleSetId: this.ruleSetId,
      permits: this.permits,
      signal: () => this.signal(),
      onDecided: (atMs) => this.onDecided(atMs),
      onEnter: () => this.onEnter(),
      onLeave: (how) => this.onLeave(how),
    }
  }

  sendAway(): void {
    this.isSentAway = true
    this.leaving?.abort()
  }
}

/** All who wait at one place. */
export class Stays {
  readonly #all = new Set<Stay>()
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  end(stay: Stay): void {
    if (stay.leaving !== undefined) this.#all.delete(stay)
  }

  close(): void {
    this.#isClosed = true
    for (const stay of this.#all) stay.sendAway()
  }

  expectWait(stay: Stay, leaving: AbortController): void {
    this.#all.add(stay)
    const gone = stay.request.signal()
    if (gone.aborted) leaving.abort()
    else gone.addEventListener('abort', () => leaving.abort(), { once: true })
    if (this.#isClosed) stay.sendAway()
  }
}
