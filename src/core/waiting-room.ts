import { type Clock, schedule, ticks, ticksPerMs, ticksUp } from './clock.js'

/** Let go on, given up by its caller, or sent away because the limiter closes. */
export type Departure = 'RELEASED' | 'ABORTED' | 'CLOSED'

/** For who does not say: how many may be held at once, and for how long at most. */
export const defaultMaxConcurrentWaits = 100
export const defaultMaxWaitMs = 5_000

export interface Arrival {
  readonly delayMs: number
  /** What is waited for: in one line nobody leaves before somebody who entered earlier. */
  readonly line: string
  readonly permits: number
  /** Whether it leaves when it is told to, and not by a time that it was told before. */
  readonly isHeld: boolean
  readonly signal?: AbortSignal | undefined
  /** `movedBy`: how many ticks later than the place it was given first the one is that its leaving has made free. */
  readonly leave: (how: Departure, movedBy: number) => void
}

interface Guest extends Arrival {
  /** In ticks, so that a release is due exactly when the clock says so. */
  releaseAt: number
  /** Where its place was when it came; it may have moved up since. */
  placedAt: number
  readonly forget: () => void
}

/**
 * Requests that have their permits but must wait for their time. One timer serves all of them, so they leave in the order
 * of their release, and of asking among equals; nothing polls. Places in a line are handed out in the order of asking: when
 * one becomes free, those behind it move up.
 */
export class WaitingRoom {
  readonly #most: number
  readonly #clock: Clock
  /** In the order of asking. */
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
    return this.#most === 0 ? Number.POSITIVE_INFINITY : Math.max(1, this.#next() - ticks(this.#clock)) / ticksPerMs
  }

  hasLine(line: string): boolean {
    return this.#guests.some((guest) => guest.line === line)
  }

  enter(arrival: Arrival): void {
    const { signal, leave } = arrival
    if (signal?.aborted || this.#closed) {
      leave(this.#closed ? 'CLOSED' : 'ABORTED', 0)
      return
    }
    const abort = (): void => this.#remove(guest, 'ABORTED')
    const placedAt = ticks(this.#clock) + ticksUp(arrival.delayMs)
    const guest: Guest = {
      ...arrival,
      releaseAt: placedAt,
      placedAt,
      forget: () => signal?.removeEventListener('abort', abort),
    }
    signal?.addEventListener('abort', abort, { once: true })
    this.#guests.push(guest)
    this.#handOut(this.#peersOf(guest))
    // A place that is free at once goes to whoever has waited longest.
    if (this.#next() <= ticks(this.#clock)) this.#release()
    else this.#arm()
  }

  close(): void {
    this.#closed = true
    for (const guest of [...this.#guests]) this.#remove(guest, 'CLOSED')
  }

  #remove(guest: Guest, how: Departure): void {
    const peers = this.#peersOf(guest)
    const own = guest.releaseAt
    const last = Math.max(own, ...peers.map(({ releaseAt }) => releaseAt))
    // Those behind move up, so that what becomes free is the last place.
    guest.releaseAt = Number.POSITIVE_INFINITY
    this.#handOut(
      peers.filter((peer) => peer !== guest),
      own,
    )
    this.#guests.splice(this.#guests.indexOf(guest), 1)
    guest.forget()
    guest.leave(how, last - guest.placedAt)
    this.#arm()
  }

  /** Those who can change places with a guest: of the same line, for as many permits, and held until they are told. */
  #peersOf({ line, permits, isHeld }: Guest): Guest[] {
    if (!isHeld) return []
    return this.#guests.filter((guest) => guest.isHeld && guest.line === line && guest.permits === permits)
  }

  /** Gives the earliest of their places, and of one that has become free, to those who asked first. */
  #handOut(peers: readonly Guest[], freed: number = Number.POSITIVE_INFINITY): void {
    const places = [...peers.map(({ releaseAt }) => releaseAt), freed].sort((a, b) => a - b)
    for (const [index, peer] of peers.entries()) peer.releaseAt = places[index] as number
  }

  #release(): void {
    const now = ticks(this.#clock)
    // If the clock has stepped back, the timer knows better how long it was: everybody moves to the new time.
    if (now < this.#armedAt)
      for (const guest of this.#guests) {
        guest.releaseAt += now - this.#timerAt
        guest.placedAt += now - this.#timerAt
      }
    this.#timerAt = Number.POSITIVE_INFINITY
    const due = this.#guests.filter(({ releaseAt }) => releaseAt <= now).sort((a, b) => a.releaseAt - b.releaseAt)
    for (const guest of due) {
      this.#guests.splice(this.#guests.indexOf(guest), 1)
      guest.forget()
      guest.leave('RELEASED', 0)
    }
    this.#arm()
  }

  /** When the first of them leaves. */
  #next(): number {
    return this.#guests.reduce((first, { releaseAt }) => Math.min(first, releaseAt), Number.POSITIVE_INFINITY)
  }

  /** Sets the timer for whoever leaves first, unless it is set already. */
  #arm(): void {
    const next = this.#next()
    if (next === this.#timerAt) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerAt = next
    if (next === Number.POSITIVE_INFINITY) return
    this.#armedAt = ticks(this.#clock)
    const left = Math.max(0, next - this.#armedAt) / ticksPerMs
    this.#cancelTimer = schedule(this.#clock, left, () => this.#release())
  }
}
