/** Permits of one bucket that were granted to a request for a certain time. */
export interface Slot {
  /** Identifies the bucket. Requests that wait for the same bucket can exchange slots with the same number of permits. */
  readonly bucket: string
  readonly permits: number
  /** Per band, the store's tick for which the permits were granted. Identifies the slot independently of the local clock. */
  readonly grantedAt: readonly number[]
  /** Ticks from the decision until the request may use the permits. */
  readonly delay: number
  /** True if the store accepts a refund of the slot only while no later slot of the bucket is taken. */
  readonly isOrdered: boolean
  /** Refunds the permits. Resolves to false if the store certainly has not executed the refund, so that it can be retried. */
  readonly giveBack?: () => Promise<boolean>
}

export interface TimedSlot {
  slot: Slot
  /** The tick of the local clock from which the slot may be used. */
  dueAt: number
}

/** The slot that one request holds in one bucket. While the ticket is in a queue, only the queue knows its current slot and time. */
export interface Ticket extends TimedSlot {
  /** Order of arrival. */
  readonly number: number
  /** True if the request waits for a callback, so that it can move to an earlier slot. */
  readonly isMovable: boolean
  /** True once the slot is due. The ticket then keeps its slot, and no other request waits behind it. */
  isDue: boolean
}

/** The requests of a queue with the slots that they hold. */
export interface TicketQueue<T extends Ticket> {
  readonly hasTickets: boolean
  /** The earliest time of a request that is not due yet. */
  readonly nextDue: number
  /** The last slot that is not due yet. */
  readonly last: Slot | undefined
  /** True if the queue itself keeps vacant slots. */
  readonly hasVacancies: boolean
  dueAtOf(ticket: T): number
  /** True if requests can exchange these slots and a request with this `isMovable` can be added. */
  accepts(isMovable: boolean, slots: readonly TimedSlot[]): boolean
  /** Adds a request and moves requests up to vacant slots. Returns the slots that remain vacant. */
  add(ticket: T, vacancies: readonly TimedSlot[], now: number): TimedSlot[]
  /** Removes the ticket and sets its `slot` and `dueAt` to those that it held. */
  remove(ticket: T): void
  /** Moves requests up to vacant slots. Returns the slots that remain vacant. */
  exchange(vacancies: readonly TimedSlot[], now: number): TimedSlot[]
  /** Marks the requests that are due. */
  advance(now: number): void
  /** All requests in order of arrival, with their current slots and times. */
  tickets(): readonly T[]
  /** The vacant slots that the queue itself keeps. */
  vacancies(): readonly TimedSlot[]
}

/** Compares band by band: a later slot of a bucket is not earlier in any band. */
export function bySlot({ grantedAt: one }: Slot, { grantedAt: other }: Slot): number {
  for (let band = 0; band < one.length; band++) {
    const difference = (one[band] as number) - (other[band] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
