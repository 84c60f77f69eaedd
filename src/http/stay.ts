import type { CheckOptions } from '../core/handler.js'
import type { Departure } from '../core/waiting-room.js'
import type { EdgeRequest } from './edge-request.js'

/**
 * The options of one check, and what becomes of its request if it has to wait. Nothing is made before that is known: most
 * requests never wait.
 */
export class Stay implements CheckOptions {
  readonly ruleSetId: string | undefined
  readonly permits: number | undefined
  /** How the waiting ended; undefined if the handler did not have the request wait. */
  left: Promise<Departure> | undefined
  readonly #request: EdgeRequest
  readonly #stays: Stays
  #leaving: AbortController | undefined
  #isSentAway = false
  #leave: (how: Departure) => void = () => {}

  constructor(request: EdgeRequest, stays: Stays, ruleSetId: string | undefined, permits: number | undefined) {
    this.#request = request
    this.#stays = stays
    this.ruleSetId = ruleSetId
    this.permits = permits
  }

  /** Aborts when the client is gone, and when everybody is sent away. */
  readonly signal = (): AbortSignal => {
    if (this.#leaving !== undefined) return this.#leaving.signal
    const leaving = new AbortController()
    this.#leaving = leaving
    this.#stays.add(this)
    const gone = this.#request.signal()
    if (gone.aborted) leaving.abort()
    else gone.addEventListener('abort', () => leaving.abort(), { once: true })
    return leaving.signal
  }

  readonly onEnter = (): void => {
    this.left = new Promise((resolve) => {
      this.#leave = resolve
    })
  }

  readonly onLeave = (how: Departure): void => this.#leave(how)

  sendAway(): void {
    this.#isSentAway = true
    this.#leaving?.abort()
  }

  get isSentAway(): boolean {
    return this.#isSentAway
  }

  forget(): void {
    if (this.#leaving !== undefined) this.#stays.delete(this)
  }
}

/** All who wait at one place. */
export class Stays {
  readonly #all = new Set<Stay>()
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  add(stay: Stay): void {
    this.#all.add(stay)
    if (this.#isClosed) stay.sendAway()
  }

  delete(stay: Stay): void {
    this.#all.delete(stay)
  }

  close(): void {
    this.#isClosed = true
    for (const stay of this.#all) stay.sendAway()
  }
}
