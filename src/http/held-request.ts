import type { CheckOptions } from '../core/handler.js'
import type { Departure } from '../core/waiting/waiting-room.js'
import type { EdgeRequest } from './edge-request.js'

/**
 * The options of one check, and the state of its request while it is held. Nearly every request has one and few are held, so
 * everything else is created when the request has to wait. Public members, because private ones are slower to create.
 */
export class HeldRequest implements CheckOptions {
  readonly all: HeldRequests
  readonly request: EdgeRequest
  readonly ruleSetId: string | undefined
  readonly permits: number | undefined
  /** The store's time of the decision in epoch milliseconds; undefined if the handler does not report it. */
  decidedAt: number | undefined = undefined
  /** Resolves when the waiting room releases the request; undefined if it is not in a waiting room. */
  left: Promise<Departure> | undefined = undefined
  leave: ((how: Departure) => void) | undefined = undefined
  /** Present once the request may have to wait. */
  leaving: AbortController | undefined = undefined
  isClosed = false

  constructor(all: HeldRequests, request: EdgeRequest, ruleSetId: string | undefined, permits: number | undefined) {
    this.all = all
    this.request = request
    this.ruleSetId = ruleSetId
    this.permits = permits
  }

  onDecided(atMs: number): void {
    this.decidedAt = atMs
  }

  /** Aborts when the client disconnects, and when the guard is closed. */
  signal(): AbortSignal {
    if (this.leaving === undefined) {
      this.leaving = new AbortController()
      this.all.add(this, this.leaving)
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

  /** For handlers of other packages, which may call the functions without their object. */
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

  close(): void {
    this.isClosed = true
    this.leaving?.abort()
  }
}

/** All requests that one guard holds. */
export class HeldRequests {
  readonly #all = new Set<HeldRequest>()
  isClosed = false

  add(held: HeldRequest, leaving: AbortController): void {
    this.#all.add(held)
    const gone = held.request.signal()
    if (gone.aborted) leaving.abort()
    else gone.addEventListener('abort', () => leaving.abort(), { once: true })
    if (this.isClosed) held.close()
  }

  end(held: HeldRequest): void {
    if (held.leaving !== undefined) this.#all.delete(held)
  }

  close(): void {
    this.isClosed = true
    for (const held of this.#all) held.close()
  }
}
