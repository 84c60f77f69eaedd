import { type Clock, schedule, ticks, ticksPerMs, ticksUp } from '../../src/core/clock.js'
import { PendingRefunds } from '../../src/core/waiting/pending-refunds.js'
import type { Slot, TimedSlot } from '../../src/core/waiting/slot.js'
import type { Arrival, Departure } from '../../src/core/waiting/waiting-room.js'
import { SlotQueueModel, type Ticket } from './slot-queue-model.js'

interface Waiter extends Pick<Arrival, 'leave'> {
  readonly tickets: readonly Ticket[]
  readonly forget: () => void
}

/**
 * Reference model of `core/waiting-room`: looks at all requests for every change.
 *
 * Delayed requests that have been charged and wait for their time. They leave in the order of their release times, and in
 * order of arrival where these are equal. One timer serves all of them.
 *
 * When a request leaves early, the held requests behind it move up, and the slot at the end of the queue is given back.
 */
export class WaitingRoomModel {
  readonly #most: number
  readonly #clock: Clock
  /** In order of arrival. */
  readonly #waiters: Waiter[] = []
  readonly #queues = new Map<string, SlotQueueModel>()
  readonly #owed: PendingRefunds
  #cancelTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #armedAt = 0
  #closed = false

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
    this.#owed = new PendingRefunds(clock, (slots) => {
      this.#addVacancies(slots)
      this.#giveBackVacancies(slots)
      this.#arm()
    })
  }

  get size(): number {
    return this.#waiters.length
  }

  get isFull(): boolean {
    return this.#waiters.length >= this.#most
  }

  /** Milliseconds until one more request can be held; Infinity if none is ever held. */
  get nextFreeMs(): number {
    if (!this.isFull) return 0
    return this.#most === 0 ? Number.POSITIVE_INFINITY : Math.max(1, this.#next() - ticks(this.#clock)) / ticksPerMs
  }

  /** True if requests wait for one of these buckets. */
  hasQueue(slots: readonly Slot[]): boolean {
    return slots.some(({ bucket }) => this.#queues.get(bucket)?.hasTickets)
  }

  enter({ slots, isHeld, signal, leave }: Arrival): void {
    const now = ticks(this.#clock)
    const tickets: Ticket[] = slots.map((slot) => ({ slot, dueAt: dueAt(slot, now), isMovable: isHeld }))
    if (signal?.aborted || this.#closed) {
      this.#vacate(tickets)
      leave(this.#closed ? 'CLOSED' : 'ABORTED')
      return
    }
    const abort = (): void => this.#remove(waiter, 'ABORTED')
    const waiter: Waiter = { tickets, leave, forget: () => signal?.removeEventListener('abort', abort) }
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiters.push(waiter)
    for (const ticket of tickets) this.#join(ticket, now)
    this.#giveBackVacancies(tickets)
    // The newcomer may have brought a slot that is due at once; the request that has waited longest takes it.
    if (this.#next() <= ticks(this.#clock)) this.#release()
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

  #join(ticket: Ticket, now: number): void {
    const { bucket } = ticket.slot
    // A slot that is due at once is of use only to requests that wait already.
    if (ticket.dueAt > now || this.#queues.has(bucket)) this.#queueOf(bucket).add(ticket, now)
  }

  #queueOf(bucket: string): SlotQueueModel {
    let queue = this.#queues.get(bucket)
    if (queue === undefined) {
      queue = new SlotQueueModel()
      this.#queues.set(bucket, queue)
    }
    return queue
  }

  #remove(waiter: Waiter, how: Departure): void {
    if (!this.#takeOut(waiter)) return
    this.#vacate(waiter.tickets)
    waiter.leave(how)
    this.#arm()
  }

  /** Returns false if the request has left before. */
  #takeOut(waiter: Waiter): boolean {
    const index = this.#waiters.indexOf(waiter)
    if (index < 0) return false
    this.#waiters.splice(index, 1)
    waiter.forget()
    for (const ticket of waiter.tickets) this.#queues.get(ticket.slot.bucket)?.remove(ticket)
    return true
  }

  /** Gives the slots of a request back, or later ones to which other requests do not move up. */
  #vacate(tickets: readonly Ticket[]): void {
    const now = ticks(this.#clock)
    for (const ticket of tickets) {
      const { slot } = ticket
      // Permits that could be used at once have no place in a queue.
      const vacancies = slot.delay === 0 ? [ticket] : this.#queueOf(slot.bucket).vacate(ticket, now)
      for (const vacancy of vacancies) this.#owed.giveBack(vacancy)
      this.#dropEmpty(slot.bucket)
    }
  }

  #addVacancies(slots: readonly TimedSlot[]): void {
    for (const timed of slots) {
      const { bucket, delay } = timed.slot
      if (delay === 0) this.#owed.giveBack(timed)
      else this.#queueOf(bucket).addVacancy(timed)
    }
  }

  #giveBackVacancies(slots: readonly TimedSlot[]): void {
    const now = ticks(this.#clock)
    for (const bucket of new Set(slots.map(({ slot }) => slot.bucket))) {
      for (const vacancy of this.#queues.get(bucket)?.takeVacancies(now) ?? []) this.#owed.giveBack(vacancy)
      this.#dropEmpty(bucket)
    }
  }

  #dropEmpty(bucket: string): void {
    if (this.#queues.get(bucket)?.isEmpty) this.#queues.delete(bucket)
  }

  #release(): void {
    const now = ticks(this.#clock)
    if (now < this.#armedAt) this.#shift(now - this.#timerAt)
    this.#timerAt = Number.POSITIVE_INFINITY
    const due = this.#waiters.filter((waiter) => releaseAt(waiter) <= now)
    for (const waiter of due.sort((one, other) => releaseAt(one) - releaseAt(other))) {
      // The callback of another one may have caused its release already.
      if (!this.#takeOut(waiter)) continue
      for (const { slot } of waiter.tickets) this.#dropEmpty(slot.bucket)
      waiter.leave('RELEASED')
    }
    this.#arm()
  }

  /** The clock was set back: how much time has passed is known from the timer, so all release times move to the new time. */
  #shift(by: number): void {
    for (const { tickets } of this.#waiters) for (const ticket of tickets) ticket.dueAt += by
    for (const queue of this.#queues.values()) queue.shiftVacancies(by)
  }

  /** Like the room, it wakes up for each ticket. This makes no difference unless the clock is set back. */
  #nextWake(): number {
    const now = ticks(this.#clock)
    const times = this.#waiters.flatMap((waiter) => {
      const queued = waiter.tickets.filter((ticket) => this.#queues.get(ticket.slot.bucket)?.has(ticket))
      const pending = queued.filter(({ dueAt }) => dueAt > now)
      return pending.length === 0 ? [releaseAt(waiter)] : pending.map(({ dueAt }) => dueAt)
    })
    return Math.min(...times)
  }

  #next(): number {
    return this.#waiters.reduce((first, waiter) => Math.min(first, releaseAt(waiter)), Number.POSITIVE_INFINITY)
  }

  /** Sets the timer for the next release, unless it is set already. */
  #arm(): void {
    const next = this.#nextWake()
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

const dueAt = ({ delay }: Slot, now: number): number => now + ticksUp(delay / ticksPerMs)

const releaseAt = ({ tickets }: Waiter): number =>
  tickets.reduce((latest, ticket) => Math.max(latest, ticket.dueAt), Number.NEGATIVE_INFINITY)
