import { bySlot, type Slot, type TimedSlot } from '../slot.js'
import { SortedList } from '../sorted-list.js'

/** Vacant slots of one size and their times. Both are sorted independently: the first slot has the first time. */
export class VacantSlots {
  readonly #slots = new SortedList<Slot>(bySlot)
  readonly #times = new SortedList<number>((one, other) => one - other)

  get size(): number {
    return this.#slots.size
  }

  add({ slot, dueAt }: TimedSlot): void {
    this.#slots.insert(slot)
    this.#times.insert(dueAt)
  }

  /** Removes and returns the slots that are due. */
  takeDue(now: number): TimedSlot[] {
    const taken: TimedSlot[] = []
    while ((this.#times.at(0) ?? Number.POSITIVE_INFINITY) <= now) taken.push(this.#removeAt(0))
    return taken
  }

  /** Removes and returns the slots that are not earlier than `last`, or all slots if it is undefined. */
  takeBehind(last: Slot | undefined): TimedSlot[] {
    const taken: TimedSlot[] = []
    for (let slot = this.#end(); slot !== undefined && !isBefore(slot, last); slot = this.#end())
      taken.push(this.#removeAt(this.size - 1))
    return taken
  }

  toArray(): TimedSlot[] {
    const times = this.#times.toArray()
    return this.#slots.toArray().map((slot, index) => ({ slot, dueAt: times[index] as number }))
  }

  #end(): Slot | undefined {
    return this.#slots.at(this.size - 1)
  }

  #removeAt(position: number): TimedSlot {
    return { slot: this.#slots.removeAt(position) as Slot, dueAt: this.#times.removeAt(position) as number }
  }
}

/** True if the store cannot take the slot back while `last` is taken. */
const isBefore = (slot: Slot, last: Slot | undefined): boolean =>
  slot.isOrdered && last !== undefined && bySlot(slot, last) < 0
