import { type Clock, schedule, ticks, ticksPerMs, ticksUp } from '../clock.js'
import { IndexedHeap } from './indexed-heap.js'
import { OwedRefunds } from './owed-refunds.js'
import type { Slot, Ticket, TimedSlot } from './slot.js'
import { SlotQueues } from './slot-queues.js'

/** Released in its turn, aborted by its caller, or rejected because the limiter closes. */
export type Departure = 'RELEASED' | 'ABORTED' | 'CLOSED'

/** Defaults: how many requests are held at once, and the longest wait. */
export const defaultMaxConcurrentWaits = 100
export const defaultMaxWaitMs = 5_000

export interface Arrival {
  /** One per bucket that the request was charged to. It is released when the time of all of them has come. */
  readonly slots: readonly Slot[]
  /** True if the request waits for `leave`; false if it was told its delay and waits by itself. */
  readonly isHeld: boolean
  readonly signal?: AbortSignal | undefined
  readonly leave: (how: Departure) => void
}

interface Waiter extends Pick<Arrival, 'leave'> {
  /** Order of arrival. */
  readonly number: number
  readonly tickets: readonly WaiterTicket[]
  readonly forget: () => void
  /** How many tickets are not due yet. */
  pending: number
  /** When the last ticket became due. Valid if none is pending. */
  releaseAt: number
}

interface WaiterTicket extends Ticket {
  readonly waiter: Waiter
  /** False if the permits could be used at once and no other request waited for them. */
  isQueued: boolean
}

/**
 * Delayed requests that have been charged and wait for their time. They leave in the order of their release times, and in
 * order of arrival where these are equal. One timer serves all of them.
 *
 * When a request leaves early, the held requests behind it move up, and the slot at the end of the queue is given back.
 * Entering and leaving take O(log n) steps, with the exceptions named at `SlotQueue`.
 */
export class WaitingRoom {
  readonly #most: number
  readonly #clock: Clock
  /** In order of arrival. */
  readonly #waiters = new Set<Waiter>()
  readonly #queues = new SlotQueues<WaiterTicket>((ticket) => this.#count(ticket.waiter, ticket.isDue ? -1 : 1))
  /** Requests without a pending ticket. */
  readonly #ready = new IndexedHeap<Waiter>(byRelease)
  readonly #owed: OwedRefunds
  #arrivals = 0
  /** How many requests wait for several buckets. */
  #several = 0
  /** The result of `#next` until the next change. */
  #nextKnown: number | undefined
  /** The last time that was read from the clock. */
  #now = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #armedAt = 0
  #closed = false

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
    this.#owed = new OwedRefunds(clock, (slots) => {
      this.#addVacancies(slots)
      this.#giveBackVacancies(slots)
      this.#arm()
    })
  }

  get size(): number {
    return this.#waiters.size
  }

  get isFull(): boolean {
    return this.#waiters.size >= this.#most
  }

  /** Milliseconds until one more request can be held; Infinity if none is ever held. */
  get nextFreeMs(): number {
    if (!this.isFull) return 0
    return this.#most === 0 ? Number.POSITIVE_INFINITY : Math.max(1, this.#next() - ticks(this.#clock)) / ticksPerMs
  }

  /** True if requests wait for one of these buckets. */
  hasQueue(slots: readonly Slot[]): boolean {
    return slots.some(({ bucket }) => this.#queues.hasTickets(bucket))
  }

  enter({ slots, isHeld, signal, leave }: Arrival): void {
    const now = this.#advance()
    if (signal?.aborted || this.#closed) {
      this.#vacate(slots.map((slot) => ({ slot, dueAt: dueAt(slot, now) })))
      leave(this.#closed ? 'CLOSED' : 'ABORTED')
      return
    }
    const abort = (): void => this.#remove(waiter, 'ABORTED')
    const tickets: WaiterTicket[] = []
    const waiter: Waiter = {
      number: this.#arrivals++,
      tickets,
      leave,
      forget: () => signal?.removeEventListener('abort', abort),
      // One more until all tickets are there.
      pending: 1,
      releaseAt: 0,
    }
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiters.add(waiter)
    if (slots.length > 1) this.#several++
    for (const slot of slots) tickets.push(this.#join(waiter, slot, isHeld, now))
    this.#count(waiter, -1)
    this.#giveBackVacancies(tickets)
    // The newcomer may have brought a slot that is due at once; the request that has waited longest takes it.
    if (this.#isDue(this.#advance())) this.#release()
    else this.#arm()
  }

  /**
   * Gives back the slots of a request that finds no room. Resolves once the refunds are sent: after the replies of the same
   * turn have been handled, so that the last slot is given back first.
   */
  async turnAway(slots: readonly Slot[]): Promise<void> {
    const now = ticks(this.#clock)
    const timed = slots.map((slot) => ({ slot, dueAt: dueAt(slot, now) }))
    this.#addVacancies(timed)
    await new Promise((resolve) => setImmediate(resolve))
    this.#giveBackVacancies(timed)
    this.#arm()
  }

  /** To be called when a store over the network has replied: refunds that could not be sent are sent now. */
  storeReplied(): void {
    this.#owed.retry()
  }

  close(): void {
    this.#closed = true
    for (const waiter of [...this.#waiters]) this.#remove(waiter, 'CLOSED')
    this.#owed.close()
  }

  #join(waiter: Waiter, slot: Slot, isMovable: boolean, now: number): WaiterTicket {
    const number = this.#arrivals++
    const ticket = { waiter, slot, number, dueAt: dueAt(slot, now), isMovable, isDue: false, isQueued: true }
    waiter.pending++
    ticket.isQueued = this.#queues.add(ticket, now)
    if (ticket.isQueued) return ticket
    ticket.isDue = true
    waiter.pending--
    return ticket
  }

  #remove(waiter: Waiter, how: Departure): void {
    if (!this.#waiters.has(waiter)) return
    this.#advance()
    this.#takeOut(waiter)
    this.#vacate(waiter.tickets)
    waiter.leave(how)
    this.#arm()
  }

  /** Returns false if the request has left before. */
  #takeOut(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false
    waiter.forget()
    this.#ready.delete(waiter)
    if (waiter.tickets.length > 1) this.#several--
    this.#nextKnown = undefined
    for (const ticket of waiter.tickets) if (ticket.isQueued) this.#queues.remove(ticket)
    return true
  }

  /** Gives the slots of a request back, or later ones to which other requests do not move up. */
  #vacate(slots: readonly TimedSlot[]): void {
    const now = this.#advance()
    for (const timed of slots) {
      // Permits that could be used at once have no place in a queue.
      const vacancies = timed.slot.delay === 0 ? [timed] : this.#queues.vacate(timed, now)
      for (const vacancy of vacancies) this.#owed.giveBack(vacancy)
      this.#queues.dropEmpty(timed.slot.bucket)
    }
  }

  #addVacancies(slots: readonly TimedSlot[]): void {
    for (const timed of slots) {
      if (timed.slot.delay === 0) this.#owed.giveBack(timed)
      else this.#queues.addVacancy(timed)
    }
  }

  #giveBackVacancies(slots: readonly TimedSlot[]): void {
    const now = this.#advance()
    for (const bucket of new Set(slots.map(({ slot }) => slot.bucket)))
      for (const vacancy of this.#queues.takeVacancies(bucket, now)) this.#owed.giveBack(vacancy)
  }

  #release(): void {
    const firedAt = ticks(this.#clock)
    // The clock was set back: how much time has passed is known from the timer.
    if (firedAt < this.#armedAt) this.#setBack(firedAt, firedAt - this.#timerAt)
    const now = this.#advance()
    this.#timerAt = Number.POSITIVE_INFINITY
    for (const waiter of this.#ready.sorted()) {
      if (waiter.releaseAt > now) break
      // The callback of another one may have caused its release already.
      if (!this.#takeOut(waiter)) continue
      for (const { slot } of waiter.tickets) this.#queues.dropEmpty(slot.bucket)
      waiter.leave('RELEASED')
    }
    this.#arm()
  }

  /** Reads the clock and marks the tickets that are due. Every change of the room begins with this. */
  #advance(): number {
    const now = ticks(this.#clock)
    this.#nextKnown = undefined
    if (now < this.#now) this.#setBack(now, 0)
    this.#now = now
    this.#queues.advance(now)
    return now
  }

  /** Moves all release times by `shift`, and checks for all tickets whether they are due. */
  #setBack(now: number, shift: number): void {
    this.#now = now
    this.#queues.setBack(now, shift)
    for (const waiter of this.#waiters) {
      for (const ticket of waiter.tickets) if (!ticket.isQueued) ticket.dueAt += shift
      this.#count(waiter, 0)
    }
  }

  #count(waiter: Waiter, change: number): void {
    waiter.pending += change
    if (waiter.pending > 0) {
      this.#ready.delete(waiter)
      return
    }
    waiter.releaseAt = waiter.tickets.reduce(latest, Number.NEGATIVE_INFINITY)
    this.#ready.set(waiter)
  }

  #isDue(now: number): boolean {
    const first = this.#ready.first
    return first !== undefined && first.releaseAt <= now
  }

  /** The earliest release. Visits all requests if some wait for several buckets, once after each change. */
  #next(): number {
    if (this.#several === 0) return this.#nextWake()
    this.#nextKnown ??= [...this.#waiters].reduce(
      (first, { tickets }) => Math.min(first, Math.max(...tickets.map((ticket) => this.#dueAtOf(ticket)))),
      Number.POSITIVE_INFINITY,
    )
    return this.#nextKnown
  }

  #dueAtOf(ticket: WaiterTicket): number {
    return ticket.isQueued ? this.#queues.dueAtOf(ticket) : ticket.dueAt
  }

  /** When a request is to be released, or its next ticket becomes due. */
  #nextWake(): number {
    return Math.min(this.#ready.first?.releaseAt ?? Number.POSITIVE_INFINITY, this.#queues.nextDue)
  }

  /** Sets the timer, unless it is set already. */
  #arm(): void {
    const next = this.#nextWake()
    if (next === this.#timerAt) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerAt = next
    if (next === Number.POSITIVE_INFINITY) return
    this.#armedAt = this.#advance()
    const left = Math.max(0, next - this.#armedAt) / ticksPerMs
    this.#cancelTimer = schedule(this.#clock, left, () => this.#release())
  }
}

const dueAt = ({ delay }: Slot, now: number): number => now + ticksUp(delay / ticksPerMs)

const latest = (time: number, ticket: Ticket): number => Math.max(time, ticket.dueAt)

const byRelease = (one: Waiter, other: Waiter): number => one.releaseAt - other.releaseAt || one.number - other.number
