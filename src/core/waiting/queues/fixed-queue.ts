import { bySlot, type Slot, type Ticket, type TicketQueue, type TimedSlot } from '../slot.js'
import { SortedList } from '../sorted-list.js'
import { VacantSlots } from './vacant-slots.js'

const byTime = (one: Ticket, other: Ticket): number => one.dueAt - other.dueAt || one.number - other.number

/**
 * Requests with fixed release times, which keep their slots. Vacant slots that the store cannot take back yet stay in the
 * queue until the requests behind them have left or they are due. Entering and leaving take O(log n) steps.
 */
export class FixedQueue<T extends Ticket> implements TicketQueue<T> {
  /** Requests whose time has not come. */
  readonly #pending: SortedList<T>
  /** The slots of these requests. */
  readonly #slots: SortedList<Slot>
  readonly #due: Set<T>
  readonly #onDue: (ticket: T) => void
  /** By number of permits. */
  readonly #vacant = new Map<number, VacantSlots>()

  /** Movable tickets must already be due. */
  constructor(onDue: (ticket: T) => void, tickets: readonly T[]) {
    const pending = tickets.filter(({ isDue }) => !isDue)
    this.#onDue = onDue
    this.#due = new Set(tickets.filter(({ isDue }) => isDue))
    this.#pending = new SortedList<T>(byTime, pending.toSorted(byTime))
    this.#slots = new SortedList(bySlot, pending.map(({ slot }) => slot).sort(bySlot))
  }

  get hasTickets(): boolean {
    return this.#due.size > 0 || this.#pending.size > 0
  }

  get hasVacancies(): boolean {
    return this.#vacant.size > 0
  }

  get nextDue(): number {
    return this.#pending.at(0)?.dueAt ?? Number.POSITIVE_INFINITY
  }

  get last(): Slot | undefined {
    return this.#slots.at(this.#slots.size - 1)
  }

  dueAtOf(ticket: T): number {
    return ticket.dueAt
  }

  accepts(isMovable: boolean): boolean {
    return !isMovable
  }

  add(ticket: T, vacancies: readonly TimedSlot[], now: number): TimedSlot[] {
    const { permits } = ticket.slot
    this.#pending.insert(ticket)
    this.#slots.insert(ticket.slot)
    this.#dropLost(now)
    for (const vacancy of vacancies) if (vacancy.slot.permits === permits) this.#vacantOf(permits).add(vacancy)
    this.advance(now)
    return vacancies.filter(({ slot }) => slot.permits !== permits)
  }

  remove(ticket: T): void {
    if (ticket.isDue) this.#due.delete(ticket)
    else this.#takeOut(ticket)
  }

  exchange(vacancies: readonly TimedSlot[], now: number): TimedSlot[] {
    this.#dropLost(now)
    for (const vacancy of vacancies) this.#vacantOf(vacancy.slot.permits).add(vacancy)
    this.advance(now)
    let taken: TimedSlot[] = []
    for (const [permits, vacant] of this.#vacant) {
      taken = taken.concat(vacant.takeDue(now), vacant.takeBehind(this.last))
      if (vacant.size === 0) this.#vacant.delete(permits)
    }
    return taken
  }

  advance(now: number): void {
    while (this.nextDue <= now) {
      const ticket = this.#pending.at(0) as T
      this.#takeOut(ticket)
      this.#due.add(ticket)
      ticket.isDue = true
      this.#onDue(ticket)
    }
  }

  tickets(): T[] {
    return [...this.#due, ...this.#pending.toArray()].sort((one, other) => one.number - other.number)
  }

  vacancies(): TimedSlot[] {
    return [...this.#vacant.values()].flatMap((vacant) => vacant.toArray())
  }

  #takeOut(ticket: T): void {
    this.#pending.removeAt(this.#pending.positionOf(ticket))
    // Equal slots are interchangeable.
    this.#slots.removeAt(this.#slots.positionOf(ticket.slot))
  }

  #dropLost(now: number): void {
    for (const [permits, vacant] of this.#vacant) {
      vacant.takeDue(now)
      if (vacant.size === 0) this.#vacant.delete(permits)
    }
  }

  #vacantOf(permits: number): VacantSlots {
    let vacant = this.#vacant.get(permits)
    if (vacant === undefined) {
      vacant = new VacantSlots()
      this.#vacant.set(permits, vacant)
    }
    return vacant
  }
}
