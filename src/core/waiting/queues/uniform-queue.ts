import { bySlot, type Slot, type Ticket, type TicketQueue, type TimedSlot } from '../slot.js'
import { SortedList } from '../sorted-list.js'

const byNumber = (one: Ticket, other: Ticket): number => one.number - other.number
const byTime = (one: number, other: number): number => one - other

/**
 * Movable requests that wait for the same number of permits. The request at a position holds the slot and the time at that
 * position, so no reassignment is needed when a request leaves. Entering and leaving take O(log n) steps.
 */
export class UniformQueue<T extends Ticket> implements TicketQueue<T> {
  /** Requests whose time has not come, in order of arrival. */
  readonly #moving: SortedList<T>
  readonly #slots: SortedList<Slot>
  readonly #times: SortedList<number>
  /** Requests that are due. They arrived before all others and keep their slots. */
  readonly #due: Set<T>
  readonly #onDue: (ticket: T) => void
  readonly hasVacancies = false

  /** The tickets must satisfy `isUniform`. */
  constructor(onDue: (ticket: T) => void, tickets: readonly T[] = []) {
    const moving = tickets.filter(({ isDue }) => !isDue)
    this.#onDue = onDue
    this.#due = new Set(tickets.filter(({ isDue }) => isDue))
    this.#moving = new SortedList<T>(byNumber, moving)
    this.#slots = new SortedList(
      bySlot,
      moving.map(({ slot }) => slot),
    )
    this.#times = new SortedList(
      byTime,
      moving.map(({ dueAt }) => dueAt),
    )
  }

  get hasTickets(): boolean {
    return this.#due.size > 0 || this.#moving.size > 0
  }

  get nextDue(): number {
    return this.#times.at(0) ?? Number.POSITIVE_INFINITY
  }

  get last(): Slot | undefined {
    return this.#slots.at(this.#slots.size - 1)
  }

  dueAtOf(ticket: T): number {
    return ticket.isDue ? ticket.dueAt : (this.#times.at(this.#moving.positionOf(ticket)) as number)
  }

  accepts(isMovable: boolean, slots: readonly TimedSlot[]): boolean {
    const permits = (this.last ?? slots[0]?.slot)?.permits
    return isMovable && slots.every(({ slot }) => slot.permits === permits)
  }

  add(ticket: T, vacancies: readonly TimedSlot[], now: number): TimedSlot[] {
    this.#moving.insert(ticket)
    this.#slots.insert(ticket.slot)
    this.#times.insert(ticket.dueAt)
    return this.exchange(vacancies, now)
  }

  remove(ticket: T): void {
    if (ticket.isDue) this.#due.delete(ticket)
    else this.#takeOut(ticket, this.#moving.positionOf(ticket))
  }

  exchange(vacancies: readonly TimedSlot[], now: number): TimedSlot[] {
    for (const { slot, dueAt } of vacancies) {
      this.#slots.insert(slot)
      this.#times.insert(dueAt)
    }
    const last = this.#moving.size
    const free: TimedSlot[] = []
    while (this.#slots.size > last)
      free.push({ slot: this.#slots.removeAt(last) as Slot, dueAt: this.#times.removeAt(last) as number })
    this.advance(now)
    return free
  }

  advance(now: number): void {
    while (this.nextDue <= now) {
      const ticket = this.#moving.at(0) as T
      this.#takeOut(ticket, 0)
      this.#due.add(ticket)
      ticket.isDue = true
      this.#onDue(ticket)
    }
  }

  tickets(): T[] {
    const moving = this.#moving.toArray()
    const slots = this.#slots.toArray()
    const times = this.#times.toArray()
    for (const [position, ticket] of moving.entries()) {
      ticket.slot = slots[position] as Slot
      ticket.dueAt = times[position] as number
    }
    return [...this.#due, ...moving]
  }

  vacancies(): TimedSlot[] {
    return []
  }

  #takeOut(ticket: T, position: number): void {
    this.#moving.removeAt(position)
    ticket.slot = this.#slots.removeAt(position) as Slot
    ticket.dueAt = this.#times.removeAt(position) as number
  }
}

/** True if a `UniformQueue` can hold these requests, which must be in order of arrival. */
export function isUniform(tickets: readonly Ticket[]): boolean {
  let last: Ticket | undefined
  for (const ticket of tickets) {
    if (last === undefined) {
      if (ticket.isDue) continue
    } else if (
      ticket.isDue ||
      ticket.slot.permits !== last.slot.permits ||
      bySlot(last.slot, ticket.slot) > 0 ||
      last.dueAt > ticket.dueAt
    )
      return false
    if (!ticket.isMovable) return false
    last = ticket
  }
  return true
}
