import type { Slot, TimedSlot } from '../../src/core/waiting/slot.js'

/** The slot that one request holds in one bucket. */
export interface Ticket extends TimedSlot {
  /** True if the request is notified of its release, so that it can move to an earlier slot. */
  readonly isMovable: boolean
}

/**
 * Reference model of `core/slot-queue`: sorts everything again for every change.
 *
 * The slots of one bucket that requests of this process wait for. Movable requests hold the earliest slots in order of
 * arrival. When a request leaves, those behind it move up, and the last slot becomes vacant. A request never moves ahead of
 * an earlier one that waits for another number of permits, or has a fixed release time.
 *
 * Slots and local times are sorted separately: a local time also contains the latency of its own reply.
 */
export class SlotQueueModel {
  /** In order of arrival. */
  #tickets: Ticket[] = []
  /** Slots that no request holds, but that are still taken in the store. */
  #vacancies: TimedSlot[] = []

  get isEmpty(): boolean {
    return this.#tickets.length === 0 && this.#vacancies.length === 0
  }

  get hasTickets(): boolean {
    return this.#tickets.length > 0
  }

  has(ticket: Ticket): boolean {
    return this.#tickets.includes(ticket)
  }

  add(ticket: Ticket, now: number): void {
    this.#dropLost(now)
    const { permits } = ticket.slot
    const last = this.#tickets.findLast(({ slot, isMovable }) => isMovable && slot.permits === permits)
    this.#tickets.push(ticket)
    // A request usually gets the last slot of all, and then no other one changes.
    const isLast = last === undefined || (bySlot(last.slot, ticket.slot) <= 0 && last.dueAt <= ticket.dueAt)
    if (!isLast || this.#vacancies.length > 0) this.#moveUp(permits, now, ticket)
  }

  remove(ticket: Ticket): void {
    this.#tickets = this.#tickets.filter((other) => other !== ticket)
  }

  /** Adds a slot that no request holds any more. It is lost if its time comes before it can be taken back. */
  addVacancy({ slot, dueAt }: TimedSlot): void {
    this.#vacancies.push({ slot, dueAt })
  }

  /** Moves requests up to vacant slots. Removes the vacancies that the store can then take back; the last one comes first. */
  takeVacancies(now: number): TimedSlot[] {
    this.#dropLost(now)
    return this.#takeBack(now)
  }

  /** The same for a request that leaves. Its slot can be used even if its time has come: the request was not released. */
  vacate(ticket: Ticket, now: number): TimedSlot[] {
    this.#dropLost(now)
    this.addVacancy(ticket)
    return this.#takeBack(now)
  }

  #dropLost(now: number): void {
    this.#vacancies = this.#vacancies.filter(({ dueAt }) => dueAt > now)
  }

  #takeBack(now: number): TimedSlot[] {
    if (this.#vacancies.length === 0) return []
    for (const permits of new Set(this.#vacancies.map(({ slot }) => slot.permits))) this.#moveUp(permits, now)
    let last: Slot | undefined
    for (const { slot, dueAt } of this.#tickets)
      if (dueAt > now && (last === undefined || bySlot(slot, last) > 0)) last = slot
    const isKept = ({ slot, dueAt }: TimedSlot): boolean =>
      slot.isOrdered && dueAt > now && last !== undefined && bySlot(slot, last) < 0
    const taken = this.#vacancies.filter((vacancy) => !isKept(vacancy))
    this.#vacancies = this.#vacancies.filter(isKept)
    return taken.sort((one, other) => bySlot(other.slot, one.slot))
  }

  shiftVacancies(ticks: number): void {
    for (const vacancy of this.#vacancies) vacancy.dueAt += ticks
  }

  /** Assigns the earliest slots of this size to the requests that arrived first; the others become vacant. */
  #moveUp(permits: number, now: number, newcomer?: Ticket): void {
    const isMoving = (ticket: Ticket): boolean =>
      ticket.isMovable && ticket.slot.permits === permits && (ticket.dueAt > now || ticket === newcomer)
    const isOfSize = ({ slot }: TimedSlot): boolean => slot.permits === permits
    const free = sorted([...this.#tickets.filter(isMoving), ...this.#vacancies.filter(isOfSize)])
    /** The last slot of earlier requests that cannot move: no request moves ahead of them. */
    let floor: Slot | undefined
    for (const ticket of this.#tickets) {
      if (isMoving(ticket)) {
        const earliest = floor === undefined || bySlot(floor, ticket.slot) <= 0 ? floor : ticket.slot
        const index = earliest && free.findLastIndex(({ slot }) => bySlot(slot, earliest) >= 0)
        const [place] = index === undefined ? free.splice(-1) : free.splice(index, 1)
        Object.assign(ticket, place)
      } else if (ticket.dueAt > now && (floor === undefined || bySlot(ticket.slot, floor) > 0)) floor = ticket.slot
    }
    this.#vacancies = [...this.#vacancies.filter((vacancy) => !isOfSize(vacancy)), ...free]
  }
}

/** Slots and times, each in their own order; the earliest is the last element. */
function sorted(places: readonly TimedSlot[]): TimedSlot[] {
  const slots = places.map(({ slot }) => slot).sort((one, other) => bySlot(other, one))
  const times = places.map(({ dueAt }) => dueAt).sort((one, other) => other - one)
  return slots.map((slot, index) => ({ slot, dueAt: times[index] as number }))
}

/** Compares band by band: a later slot of a bucket is not earlier in any band. */
function bySlot({ grantedAt: one }: Slot, { grantedAt: other }: Slot): number {
  for (const [band, at] of one.entries()) if (at !== other[band]) return at - (other[band] ?? 0)
  return 0
}
