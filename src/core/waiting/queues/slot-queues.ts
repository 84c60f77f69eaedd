import { IndexedHeap } from '../indexed-heap.js'
import type { Ticket, TimedSlot } from '../slot.js'
import { SlotQueue } from './slot-queue.js'

/** The queues of all buckets that requests wait for. Tickets are marked as due by the time of the last `advance`. */
export class SlotQueues<T extends Ticket> {
  readonly #onDue: (ticket: T) => void
  readonly #byBucket = new Map<string, SlotQueue<T>>()
  readonly #byTime = new IndexedHeap<SlotQueue<T>>(byNextDue)

  /** `onDue` is called when a ticket becomes due, and when it is no longer due because the clock was set back. */
  constructor(onDue: (ticket: T) => void) {
    this.#onDue = onDue
  }

  /** The earliest time of a ticket that is not due yet. */
  get nextDue(): number {
    return this.#byTime.first?.nextDue ?? Number.POSITIVE_INFINITY
  }

  /** True if requests wait for this bucket. */
  hasTickets(bucket: string): boolean {
    return this.#byBucket.get(bucket)?.hasTickets ?? false
  }

  dueAtOf(ticket: T): number {
    return this.#byBucket.get(ticket.slot.bucket)?.dueAtOf(ticket) ?? ticket.dueAt
  }

  /** Returns false without adding the ticket if it is due now and no other request waits for the bucket. */
  add(ticket: T, now: number): boolean {
    const { bucket } = ticket.slot
    if (ticket.dueAt <= now && !this.#byBucket.has(bucket)) return false
    const queue = this.#of(bucket)
    queue.add(ticket, now)
    this.#byTime.set(queue)
    return true
  }

  /** Removes the ticket and sets its `slot` and `dueAt` to those that it held. */
  remove(ticket: T): void {
    const queue = this.#byBucket.get(ticket.slot.bucket)
    if (queue === undefined) return
    queue.remove(ticket)
    this.#byTime.set(queue)
  }

  addVacancy(timed: TimedSlot): void {
    this.#of(timed.slot.bucket).addVacancy(timed)
  }

  /** Moves requests of the bucket up to vacant slots. Removes and returns the vacancies that the store can then take back. */
  takeVacancies(bucket: string, now: number): readonly TimedSlot[] {
    const queue = this.#byBucket.get(bucket)
    return queue === undefined ? [] : this.#settled(bucket, queue, queue.takeVacancies(now))
  }

  /** Like `takeVacancies`, after the request that held the slot has left. */
  vacate(timed: TimedSlot, now: number): readonly TimedSlot[] {
    const { bucket } = timed.slot
    const queue = this.#of(bucket)
    return this.#settled(bucket, queue, queue.vacate(timed, now))
  }

  dropEmpty(bucket: string): void {
    const queue = this.#byBucket.get(bucket)
    if (!queue?.isEmpty) return
    this.#byBucket.delete(bucket)
    this.#byTime.delete(queue)
  }

  /** Marks the tickets that are due. */
  advance(now: number): void {
    for (let queue = this.#byTime.first; queue !== undefined && queue.nextDue <= now; queue = this.#byTime.first) {
      queue.advance(now)
      this.#byTime.set(queue)
    }
  }

  /** Like `advance`, after the clock was set back. Moves all times by `ticks`. */
  setBack(now: number, ticks: number): void {
    for (const queue of this.#byBucket.values()) {
      queue.setBack(now, ticks)
      this.#byTime.set(queue)
    }
  }

  #of(bucket: string): SlotQueue<T> {
    let queue = this.#byBucket.get(bucket)
    if (queue === undefined) {
      queue = new SlotQueue(this.#onDue)
      this.#byBucket.set(bucket, queue)
    }
    return queue
  }

  #settled(bucket: string, queue: SlotQueue<T>, taken: readonly TimedSlot[]): readonly TimedSlot[] {
    this.#byTime.set(queue)
    this.dropEmpty(bucket)
    return taken
  }
}

function byNextDue(one: { readonly nextDue: number }, other: { readonly nextDue: number }): number {
  // Not a subtraction, because Infinity minus Infinity is NaN.
  return one.nextDue < other.nextDue ? -1 : Number(one.nextDue > other.nextDue)
}
