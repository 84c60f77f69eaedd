import { bySlot, type Slot, type Ticket, type TicketQueue, type TimedSlot } from '../slot.js'

/**
 * Requests with different numbers of permits, some of them with a fixed release time, or with times that are out of order
 * because the clock was set back. Movable requests hold the earliest slots of their size in order of arrival. They never move
 * ahead of an earlier request that has another size or a fixed time. Each operation visits all requests.
 */
export class MixedQueue<T extends Ticket> implements TicketQueue<T> {
  /** In order of arrival. */
  #tickets: T[]
  readonly #onDue: (ticket: T) => void
  readonly hasVacancies = false
  nextDue = Number.POSITIVE_INFINITY
  /** The last slot that is not due yet. */
  last: Slot | undefined

  constructor(onDue: (ticket: T) => void, tickets: readonly T[]) {
    this.#onDue = onDue
    this.#tickets = [...tickets]
  }

  get hasTickets(): boolean {
    return this.#tickets.length > 0
  }

  dueAtOf(ticket: T): number {
    return ticket.dueAt
  }

  accepts(): boolean {
    return true
  }

  add(ticket: T, vacancies: readonly TimedSlot[], now: number): TimedSlot[] {
    const { permits } = ticket.slot
    const last = this.#tickets.findLast(({ slot, isMovable }) => isMovable && slot.permits === permits)
    this.#tickets.push(ticket)
    // A request usually gets the last slot, so that no other slot changes.
    const isLast = last === undefined || (bySlot(last.slot, ticket.slot) <= 0 && last.dueAt <= ticket.dueAt)
    const free = isLast && vacancies.length === 0 ? [] : this.#moveUp(permits, vacancies, now, ticket)
    this.advance(now)
    return free
  }

  remove(ticket: T): void {
    const index = this.#tickets.indexOf(ticket)
    if (index < 0) return
    this.#tickets.splice(index, 1)
    if (ticket.dueAt > this.nextDue) return
    this.nextDue = Number.POSITIVE_INFINITY
    for (const { isDue, dueAt } of this.#tickets) if (!isDue && dueAt < this.nextDue) this.nextDue = dueAt
  }

  exchange(vacancies: readonly TimedSlot[], now: number): TimedSlot[] {
    let free = [...vacancies]
    for (const permits of new Set(vacancies.map(({ slot }) => slot.permits))) free = this.#moveUp(permits, free, now)
    this.advance(now)
    return free
  }

  advance(now: number): void {
    this.nextDue = Number.POSITIVE_INFINITY
    this.last = undefined
    for (const ticket of this.#tickets) {
      const isDue = ticket.dueAt <= now
      if (!isDue) {
        this.nextDue = Math.min(this.nextDue, ticket.dueAt)
        if (this.last === undefined || bySlot(ticket.slot, this.last) > 0) this.last = ticket.slot
      }
      if (isDue === ticket.isDue) continue
      ticket.isDue = isDue
      this.#onDue(ticket)
    }
  }

  tickets(): readonly T[] {
    return this.#tickets
  }

  vacancies(): TimedSlot[] {
    return []
  }

  /** Assigns the earliest slots of this size to the requests that arrived first; returns the vacancies that remain. */
  #moveUp(permits: number, vacancies: readonly TimedSlot[], now: number, newcomer?: Ticket): TimedSlot[] {
    const isMoving = (ticket: Ticket): boolean =>
      ticket.isMovable && ticket.slot.permits === permits && (ticket.dueAt > now || ticket === newcomer)
    const isOfSize = ({ slot }: TimedSlot): boolean => slot.permits === permits
    const moving = this.#tickets.filter(isMoving)
    const free = sorted([...moving, ...vacancies.filter(isOfSize)])
    const passed = moving.length === 0 ? [] : this.#assign(free, isMoving, now)
    return [...vacancies.filter((vacancy) => !isOfSize(vacancy)), ...free, ...passed.reverse()]
  }

  /** Removes assigned slots from `free`. Also removes and returns the slots before the last floor that no request gets. */
  #assign(free: TimedSlot[], isMoving: (ticket: Ticket) => boolean, now: number): TimedSlot[] {
    /** The last slot of earlier requests that cannot move. No later request moves ahead of it. */
    let floor: Slot | undefined
    /** Free slots before the floor, the earliest first. */
    const passed: TimedSlot[] = []
    for (const ticket of this.#tickets) {
      if (isMoving(ticket)) {
        // A request whose slot is before the floor keeps it or gets another slot that is not earlier.
        const isBehind = floor === undefined || bySlot(floor, ticket.slot) <= 0
        const index = isBehind ? -1 : passed.findIndex(({ slot }) => bySlot(slot, ticket.slot) >= 0)
        Object.assign(ticket, index < 0 ? free.pop() : passed.splice(index, 1)[0])
      } else if (ticket.dueAt > now && (floor === undefined || bySlot(ticket.slot, floor) > 0)) {
        floor = ticket.slot
        while (free.length > 0 && bySlot((free.at(-1) as TimedSlot).slot, floor) < 0)
          passed.push(free.pop() as TimedSlot)
      }
    }
    return passed
  }
}

/** Sorts slots and times independently in descending order, so that the last element is the earliest. */
function sorted(timedSlots: readonly TimedSlot[]): TimedSlot[] {
  const slots = timedSlots.map(({ slot }) => slot).sort((one, other) => bySlot(other, one))
  const times = timedSlots.map(({ dueAt }) => dueAt).sort((one, other) => other - one)
  return slots.map((slot, index) => ({ slot, dueAt: times[index] as number }))
}
