import { bySlot, type Ticket, type TicketQueue, type TimedSlot } from '../slot.js'
import { FixedQueue } from './fixed-queue.js'
import { MixedQueue } from './mixed-queue.js'
import { isUniform, UniformQueue } from './uniform-queue.js'

/**
 * The slots of one bucket that requests of this process wait for. Movable requests hold the earliest slots in order of
 * arrival. When a request leaves, those behind it move up, and the last slot becomes vacant. A request never moves ahead of
 * an earlier one that waits for another number of permits or has a fixed release time.
 *
 * Slots and local times are sorted separately, because a local time includes the latency of its own reply.
 *
 * Entering and leaving take O(log n) steps while all requests can move and wait for the same number of permits, or none
 * can move. Otherwise they take O(n) steps.
 */
export class SlotQueue<T extends Ticket> {
  readonly #onDue: (ticket: T) => void
  #queue: TicketQueue<T>
  /** Slots that no request holds, but that are still taken in the store. */
  #vacancies: TimedSlot[] = []

  /** `onDue` is called when a ticket becomes due, and when it is no longer due because the clock was set back. */
  constructor(onDue: (ticket: T) => void) {
    this.#onDue = onDue
    this.#queue = new UniformQueue(onDue)
  }

  get isEmpty(): boolean {
    return !this.#queue.hasTickets && !this.#hasVacancies
  }

  get hasTickets(): boolean {
    return this.#queue.hasTickets
  }

  /** The earliest time of a ticket that is not due yet. */
  get nextDue(): number {
    return this.#queue.nextDue
  }

  dueAtOf(ticket: T): number {
    return this.#queue.dueAtOf(ticket)
  }

  add(ticket: T, now: number): void {
    this.#dropLost(now)
    if (!this.#queue.accepts(ticket.isMovable, [...this.#vacancies, ticket])) {
      this.#mix()
      // Drops the lost vacancies that the previous queue kept.
      this.#dropLost(now)
    }
    this.#vacancies = this.#queue.add(ticket, this.#vacancies, now)
    this.#unmix()
  }

  /** Removes the ticket and sets its `slot` and `dueAt` to those that it held. */
  remove(ticket: T): void {
    this.#queue.remove(ticket)
  }

  /** Adds a slot that no request holds. It is lost if its time comes before the store can take it back. */
  addVacancy({ slot, dueAt }: TimedSlot): void {
    this.#vacancies.push({ slot, dueAt })
  }

  /** Moves requests up to vacant slots. Removes and returns the vacancies that the store can then take back, the last one first. */
  takeVacancies(now: number): TimedSlot[] {
    this.#dropLost(now)
    return this.#takeBack(now)
  }

  /** Like `takeVacancies`, after a request has left. Its slot is usable even if it is due, because the request was not released. */
  vacate(ticket: TimedSlot, now: number): TimedSlot[] {
    this.#dropLost(now)
    this.addVacancy(ticket)
    return this.#takeBack(now)
  }

  /** Marks the tickets that are due. `now` must not be earlier than in the last call. */
  advance(now: number): void {
    this.#queue.advance(now)
  }

  /** Like `advance`, but after the clock was set back. Moves all times by `ticks`. */
  setBack(now: number, ticks: number): void {
    this.#mix()
    for (const ticket of this.#queue.tickets()) ticket.dueAt += ticks
    this.#vacancies = this.#vacancies.map(({ slot, dueAt }) => ({ slot, dueAt: dueAt + ticks }))
    this.#queue.advance(now)
    this.#unmix()
  }

  #dropLost(now: number): void {
    if (this.#vacancies.length > 0) this.#vacancies = this.#vacancies.filter(({ dueAt }) => dueAt > now)
  }

  #takeBack(now: number): TimedSlot[] {
    if (!this.#hasVacancies) return []
    if (this.#queue instanceof UniformQueue && !this.#queue.accepts(true, this.#vacancies)) this.#mix()
    const free = this.#queue.exchange(this.#vacancies, now)
    const { last } = this.#queue
    const isKept = ({ slot, dueAt }: TimedSlot): boolean =>
      slot.isOrdered && dueAt > now && last !== undefined && bySlot(slot, last) < 0
    this.#vacancies = free.filter(isKept)
    this.#unmix()
    return free.filter((vacancy) => !isKept(vacancy)).sort((one, other) => bySlot(other.slot, one.slot))
  }

  get #hasVacancies(): boolean {
    return this.#vacancies.length > 0 || this.#queue.hasVacancies
  }

  #mix(): void {
    if (this.#queue instanceof MixedQueue) return
    this.#vacancies = [...this.#vacancies, ...this.#queue.vacancies()]
    this.#queue = new MixedQueue(this.#onDue, this.#queue.tickets())
  }

  /** Returns to a queue with O(log n) operations, if possible. */
  #unmix(): void {
    if (!(this.#queue instanceof MixedQueue)) return
    const tickets = this.#queue.tickets()
    if (this.#vacancies.length === 0 && isUniform(tickets)) this.#queue = new UniformQueue(this.#onDue, tickets)
    else if (tickets.every(({ isDue, isMovable }) => isDue || !isMovable))
      this.#queue = new FixedQueue(this.#onDue, tickets)
  }
}
