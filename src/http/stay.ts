import type { CheckOptions } from '../core/handler.js'
import type { Departure } from '../core/waiting-room.js'
import type { EdgeRequest } from './edge-request.js'

/**
 * The options of one check, and what becomes of its request if it has to wait. A plain object, since every request needs one:
 * private members of a class cost a request more than the decision does.
 */
export interface Stay extends CheckOptions {
  readonly signal: () => AbortSignal
  /** How the waiting ended; undefined if the handler did not have the request wait. */
  left: Promise<Departure> | undefined
  /** Present once the request may have to wait. */
  leaving: AbortController | undefined
  isSentAway: boolean
}

/** All who wait at one place. */
export class Stays {
  readonly #all = new Set<Stay>()
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  begin(request: EdgeRequest, ruleSetId: string | undefined, permits: number | undefined): Stay {
    let leave: (how: Departure) => void
    const stay: Stay = {
      ruleSetId,
      permits,
      signal: () => (stay.leaving ?? this.#expectWait(stay, request)).signal,
      onEnter() {
        stay.left = new Promise((resolve) => {
          leave = resolve
        })
      },
      onLeave: (how) => leave(how),
      left: undefined,
      leaving: undefined,
      isSentAway: false,
    }
    return stay
  }

  end(stay: Stay): void {
    if (stay.leaving !== undefined) this.#all.delete(stay)
  }

  close(): void {
    this.#isClosed = true
    for (const stay of this.#all) sendAway(stay)
  }

  /** Its signal aborts when the client is gone, and when everybody is sent away. */
  #expectWait(stay: Stay, request: EdgeRequest): AbortController {
    const leaving = new AbortController()
    stay.leaving = leaving
    this.#all.add(stay)
    const gone = request.signal()
    if (gone.aborted) leaving.abort()
    else gone.addEventListener('abort', () => leaving.abort(), { once: true })
    if (this.#isClosed) sendAway(stay)
    return leaving
  }
}

function sendAway(stay: Stay): void {
  stay.isSentAway = true
  stay.leaving?.abort()
}
