import { type Clock, schedule, ticks, ticksPerMs, ticksUp } from './clock.js'

interface Guest {
  readonly line: string
  /** In ticks, so that a release is due exactly when the clock says so. */
  releaseAt: number
  readonly leave: (how: Departure) => void
  cancel: () => void
}

/** Let go on, given up by its caller, or sent away because the limiter closes. */
export type Departure = 'RELEASED' | 'ABORTED' | 'CLOSED'

/**
 * Requests that have their permits but must wait for their time. One timer serves all of them, so they leave in the order
 * of their release, and of asking among equals; nothing polls.
 */
export class WaitingRoom {
  readonly #most: number
  readonly #clock: Clock
  /** Ordered by release. */
  readonly #guests: Guest[] = []
  #cancelTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #armedAt = 0
  #closed = false

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
  }

  get size(): number {
    return this.#guests.length
  }

  get isFull(): boolean {
    return this.#guests.length >= this.#most
  }

  /** Milliseconds until a place becomes free; Infinity if there are none at all. */
  get nextFreeMs(): number {
    if (!this.isFull) return 0
    const first = this.#guests[0]
    return first === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(1, first.releaseAt - ticks(this.#clock)) / ticksPerMs
  }

  /** `line` names what is waited for: in one line nobody leaves before somebody who entered earlier. */
  enter(delayMs: number, line: string, signal: AbortSignal | undefined, leave: (how: Departure) => void): void {
    if (signal?.aborted || this.#closed) {
      leave(this.#closed ? 'CLOSED' : 'ABORTED')
      return
    }
    const ahead = this.#guests.findLast((guest) => guest.line === line)?.releaseAt ?? Number.NEGATIVE_INFINITY
    const releaseAt = Math.max(ahead, ticks(this.#clock) + ticksUp(delayMs))
    const guest: Guest = { line, releaseAt, leave, cancel: () => {} }
    if (signal !== undefined) {
      const abort = (): void => this.#remove(guest, 'ABORTED')
      signal.addEventListener('abort', abort, { once: true })
      guest.cancel = () => signal.removeEventListener('abort', abort)
    }
    this.#guests.splice(this.#placeOf(guest.releaseAt), 0, guest)
    this.#arm()
  }

  close(): void {
    this.#closed = true
    for (const guest of [...this.#guests]) this.#remove(guest, 'CLOSED')
  }

  #remove(guest: Guest, how: Departure): void {
    this.#guests.splice(this.#guests.indexOf(guest), 1)
    guest.cancel()
    guest.leave(how)
    this.#arm()
  }

  #release(): void {
    const now = ticks(this.#clock)
    // If the clock has stepped back, the timer knows better how long it was: everybody moves to the new time.
    if (now < this.#armedAt) for (const guest of this.#guests) guest.releaseAt += now - this.#timerAt
    this.#timerAt = Number.POSITIVE_INFINITY
    for (let first = this.#guests[0]; first !== undefined && first.releaseAt <= now; first = this.#guests[0]) {
      this.#guests.shift()
      first.cancel()
      first.leave('RELEASED')
    }
    this.#arm()
  }

  /** Sets the timer for whoever leaves first, unless it is set already. */
  #arm(): void {
    const next = this.#guests[0]?.releaseAt ?? Number.POSITIVE_INFINITY
    if (next === this.#timerAt) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerAt = next
    if (next === Number.POSITIVE_INFINITY) return
    this.#armedAt = ticks(this.#clock)
    const left = Math.max(0, next - this.#armedAt) / ticksPerMs
    this.#cancelTimer = schedule(this.#clock, left, () => this.#release())
  }

  /** After everybody who leaves no later. */
  #placeOf(releaseAt: number): number {
    let low = 0
    let high = this.#guests.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#guests[middle] as Guest).releaseAt <= releaseAt) low = middle + 1
      else high = middle
    }
    return low
  }
}
