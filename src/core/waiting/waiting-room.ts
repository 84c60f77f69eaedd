import { type Clock, schedule, ticks, ticksPerMs, ticksUp } from '../clock.js'
import type { CheckOptions } from '../handler.js'
import { nextTurn } from '../scheduling/next-turn.js'
import { IndexedHeap } from './indexed-heap.js'
import { PendingRefunds } from './pending-refunds.js'
import { SlotQueues } from './queues/slot-queues.js'
import type { Slot, Ticket, TimedSlot } from './slot.js'

/** How a wait ended: released in order, aborted by the caller, or rejected because the limiter closes. */
export type Departure = 'RELEASED' | 'ABORTED' | 'CLOSED'

export const defaultMaxConcurrentWaits = 100
export const defaultMaxWaitMs = 5_000

export interface Arrival {
  /** One per bucket that the request was charged to. The request is released when all of them are due. */
  readonly slots: readonly Slot[]
  /** True if the request proceeds when `leave` is called. False if the caller waits for the returned delay itself. */
  readonly isHeld: boolean
  readonly signal?: AbortSignal | undefined
  readonly leave: (how: Departure) => void
}

/** The options of a check that concern its wait. */
type WaitListeners = Pick<CheckOptions, 'signal' | 'onEnter' | 'onLeave'>

interface Waiter extends Pick<Arrival, 'leave'> {
  /** Order of arrival. */
  readonly number: number
  readonly tickets: readonly WaiterTicket[]
  readonly removeListener: () => void
  /** The number of tickets that are not due yet. */
  pending: number
  /** The time at which the last ticket became due. Valid if none is pending. */
  releaseAt: number
}

interface WaiterTicket extends Ticket {
  readonly waiter: Waiter
  /** False if the permits were usable immediately and no other request waited for them. */
  isQueued: boolean
}

/**
 * Holds delayed requests that have already been charged until their release time. Requests are released in the order of their
 * release times, and in order of arrival if these are equal. One timer serves all requests.
 *
 * When a request leaves early, the held requests behind it move up, and the slot at the end of the queue is refunded.
 * Entering and leaving take O(log n) steps, with the exceptions described at `SlotQueue`.
 */
export class WaitingRoom {
  /** Plain fields, because a guard reads them for every request. */
  size = 0
  /** True if a further request would be rejected. */
  isFull: boolean
  readonly #capacity: number
  readonly #clock: Clock
  /** In order of arrival. */
  readonly #waiters = new Set<Waiter>()
  readonly #queues = new SlotQueues<WaiterTicket>((ticket) => this.#count(ticket.waiter, ticket.isDue ? -1 : 1))
  /** Requests without a pending ticket. */
  readonly #ready = new IndexedHeap<Waiter>(byRelease)
  readonly #refunds: PendingRefunds
  #arrivals = 0
  /** Requests that wait for a hold, in queues of their own. */
  #occupied = 0
  /** The number of requests that wait for several buckets. */
  #multiBucket = 0
  /** The cached result of `#nextRelease`, valid until the next change. */
  #cachedNextRelease: number | undefined
  /** The time at the last reading of the clock. */
  #now = Number.NEGATIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #armedAt = 0
  #closed = false

  constructor(capacity: number, clock: Clock) {
    this.#capacity = capacity
    this.isFull = capacity === 0
    this.#clock = clock
    this.#refunds = new PendingRefunds(clock, (slots) => {
      this.#addVacancies(slots)
      this.#giveBackVacancies(slots)
      this.#arm()
    })
  }

  /** Milliseconds until another request can be held. Infinity if the capacity is 0. */
  get nextFreeMs(): number {
    if (!this.isFull) return 0
    if (this.#capacity === 0) return Number.POSITIVE_INFINITY
    return Math.max(1, this.#nextRelease() - ticks(this.#clock)) / ticksPerMs
  }

  /** Counts a request that waits for a hold, outside this room. */
  occupy(): void {
    this.#occupied += 1
    this.#updateSize()
  }

  /** Reverts `occupy`. */
  vacate(): void {
    this.#occupied -= 1
    this.#updateSize()
  }

  /** True if requests wait for one of these buckets. */
  hasQueue(slots: readonly Slot[]): boolean {
    return slots.some(({ bucket }) => this.#queues.hasTickets(bucket))
  }

  /** Holds the request of a check. Calls the functions of `options` as methods; `onDeparture` runs before its `onLeave`. */
  hold(slots: readonly Slot[], options: WaitListeners, onDeparture?: (how: Departure) => void): void {
    options.onEnter?.()
    this.enter({
      slots,
      isHeld: options.onLeave !== undefined,
      signal: typeof options.signal === 'function' ? options.signal() : options.signal,
      leave(how) {
        onDeparture?.(how)
        options.onLeave?.(how)
      },
    })
  }

  /** Holds a request until its slots are due, it aborts, or the room closes. */
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
      removeListener: () => signal?.removeEventListener('abort', abort),
      // Starts one higher than the number of tickets, until all tickets have been added.
      pending: 1,
      releaseAt: 0,
    }
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiters.add(waiter)
    this.#updateSize()
    if (slots.length > 1) this.#multiBucket++
    for (const slot of slots) tickets.push(this.#join(waiter, slot, isHeld, now))
    this.#count(waiter, -1)
    this.#giveBackVacancies(tickets)
    // The new request may have brought a slot that is already due. The request that has waited longest takes it.
    if (this.#isDue(this.#advance())) this.#release()
    else this.#arm()
  }

  /**
   * Refunds the slots of a request that the full room rejects. Waits for the other replies of the same turn, so that the last
   * slot is refunded first. Resolves once the refunds have been sent.
   */
  async turnAway(slots: readonly Slot[]): Promise<void> {
    const now = ticks(this.#clock)
    const timed = slots.map((slot) => ({ slot, dueAt: dueAt(slot, now) }))
    this.#addVacancies(timed)
    await new Promise<void>((resolve) => nextTurn(resolve))
    this.#giveBackVacancies(timed)
    this.#arm()
  }

  /** Retries failed refunds. To be called when a networked store has replied. */
  storeReplied(): void {
    if (this.#refunds.hasKept) this.#refunds.retry()
  }

  /** Releases all requests as `CLOSED` and refunds them. */
  close(): void {
    this.#closed = true
    for (const waiter of [...this.#waiters]) this.#remove(waiter, 'CLOSED')
    this.#refunds.close()
  }

  #updateSize(): void {
    this.size = this.#waiters.size + this.#occupied
    this.isFull = this.size >= this.#capacity
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

  /** Returns false if the request has already left. */
  #takeOut(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false
    this.#updateSize()
    waiter.removeListener()
    this.#ready.delete(waiter)
    if (waiter.tickets.length > 1) this.#multiBucket--
    this.#cachedNextRelease = undefined
    for (const ticket of waiter.tickets) if (ticket.isQueued) this.#queues.remove(ticket)
    return true
  }

  /** Refunds the slots of a request, or the later slots that become vacant because other requests move up. */
  #vacate(slots: readonly TimedSlot[]): void {
    const now = this.#advance()
    for (const timed of slots) {
      // Permits without a delay are not in a queue.
      const vacancies = timed.slot.delay === 0 ? [timed] : this.#queues.vacate(timed, now)
      for (const vacancy of vacancies) this.#refunds.giveBack(vacancy)
      this.#queues.dropEmpty(timed.slot.bucket)
    }
  }

  #addVacancies(slots: readonly TimedSlot[]): void {
    for (const timed of slots) {
      if (timed.slot.delay === 0) this.#refunds.giveBack(timed)
      else this.#queues.addVacancy(timed)
    }
  }

  #giveBackVacancies(slots: readonly TimedSlot[]): void {
    const now = this.#advance()
    for (const bucket of new Set(slots.map(({ slot }) => slot.bucket)))
      for (const vacancy of this.#queues.takeVacancies(bucket, now)) this.#refunds.giveBack(vacancy)
  }

  #release(): void {
    const firedAt = ticks(this.#clock)
    // If the clock was set back, the elapsed time is known from the timer only.
    if (firedAt < this.#armedAt) this.#setBack(firedAt, firedAt - this.#timerAt)
    const now = this.#advance()
    this.#timerAt = Number.POSITIVE_INFINITY
    for (const waiter of this.#ready.sorted()) {
      if (waiter.releaseAt > now) break
      // The callback of another request may already have released it.
      if (!this.#takeOut(waiter)) continue
      for (const { slot } of waiter.tickets) this.#queues.dropEmpty(slot.bucket)
      waiter.leave('RELEASED')
    }
    this.#arm()
  }

  /** Reads the clock and marks the tickets that are due. Every change starts with this call. */
  #advance(): number {
    const now = ticks(this.#clock)
    this.#cachedNextRelease = undefined
    if (now < this.#now) this.#setBack(now, 0)
    this.#now = now
    this.#queues.advance(now)
    return now
  }

  /** Moves all release times by `shift` and re-evaluates which tickets are due. */
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

  /** The earliest release time. If some requests wait for several buckets, visits all requests once after each change. */
  #nextRelease(): number {
    if (this.#multiBucket === 0) return this.#nextWake()
    this.#cachedNextRelease ??= [...this.#waiters].reduce(
      (first, { tickets }) => Math.min(first, Math.max(...tickets.map((ticket) => this.#dueAtOf(ticket)))),
      Number.POSITIVE_INFINITY,
    )
    return this.#cachedNextRelease
  }

  #dueAtOf(ticket: WaiterTicket): number {
    return ticket.isQueued ? this.#queues.dueAtOf(ticket) : ticket.dueAt
  }

  /** The time at which the next request must be released or the next ticket becomes due. */
  #nextWake(): number {
    return Math.min(this.#ready.first?.releaseAt ?? Number.POSITIVE_INFINITY, this.#queues.nextDue)
  }

  /** Sets the timer, unless it is already set for the right time. */
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
