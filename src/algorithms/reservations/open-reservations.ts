import type { Band } from '../../core/rule.js'
import { exactLimit, mulDiv } from '../exact.js'
import { carriedFraction } from '../level.js'

/** A number of permits: a whole number, and a fraction in units of 1 / windowTicks. */
export interface Amount {
  readonly whole: number
  readonly fraction: number
}

/** The permits that a reservation has taken from one bucket. */
export interface OpenReservation {
  readonly id: string
  readonly permits: number
  /** The tick at which they were taken. */
  readonly takenAt: number
  /** The tick at which the bucket drops the reservation, unless it is settled before. */
  readonly endsAt: number
  /** True if the permits are returned at that tick. */
  readonly isRefunded: boolean
}

interface Entry {
  reservation: OpenReservation
  returnable: Amount
}

const never = Number.POSITIVE_INFINITY

/**
 * The open reservations of a bucket, oldest first. Twin of stores/redis/lua/open-reservations.lua.
 *
 * Permits are returned as of the time at which they were taken: the bucket must then be as if they had never been taken. If a
 * bucket that refills would have been full in between, it would not have refilled further, and what it has refilled since must
 * not be returned again. Each entry therefore has the least number of permits that have been missing from the bucket since it
 * was made. No more than these are returnable. They never decrease from one entry to the next, because a later one is younger.
 */
export class OpenReservations {
  readonly #entries: Entry[] = []
  /** The window of all fractions. */
  #windowTicks: number
  /** The first tick at which a reservation ends. */
  #nextEnd = never

  constructor(band: Band) {
    this.#windowTicks = band.windowTicks
  }

  get size(): number {
    return this.#entries.length
  }

  /** Adds a reservation whose permits have just been taken from the bucket, from which `missing` permits are missing now. */
  add(reservation: OpenReservation, missing: Amount): void {
    this.#entries.push({ reservation, returnable: missing })
    this.#nextEnd = Math.min(this.#nextEnd, reservation.endsAt)
  }

  /** Records the permits that are missing now. Removes reservations with nothing left to return. */
  observe(missing: Amount, band: Band): void {
    if (this.#windowTicks !== band.windowTicks) this.#carry(band)
    this.#lower(this.#entries.length - 1, missing)
    const kept = this.#entries.findIndex(({ returnable }) => returnable.whole > 0 || returnable.fraction > 0)
    if (kept !== 0) this.#entries.splice(0, kept < 0 ? this.#entries.length : kept)
  }

  /** Multiplies all amounts by to/from, rounded down, because the bucket is counted in another unit from now on. */
  scale(to: number, from: number): void {
    for (const entry of this.#entries) {
      const { reservation, returnable } = entry
      const { whole, fraction } = returnable
      const scaled = mulDiv(to, whole, from)
      // A product that is not exact counts as 0, because nothing must be returned twice.
      const rest = fraction * to < exactLimit ? Math.floor((fraction * to) / from) : 0
      const carried = Math.floor(rest / this.#windowTicks)
      entry.returnable = { whole: scaled + carried, fraction: rest - carried * this.#windowTicks }
      entry.reservation = { ...reservation, permits: mulDiv(to, reservation.permits, from) }
    }
  }

  /** Removes a reservation and returns the part of `permits` that is returnable; undefined if there is no such reservation. */
  giveBack(id: string, permits: number): Amount | undefined {
    const index = this.#indexOf(id)
    if (index < 0) return undefined
    const { returnable } = this.#entries[index] as Entry
    const returned = returnable.whole < permits ? returnable : { whole: permits, fraction: 0 }
    this.#entries.splice(index, 1)
    for (let i = index; i < this.#entries.length; i++) {
      const later = this.#entries[i] as Entry
      later.returnable = this.#minus(later.returnable, returned)
    }
    this.#lower(index - 1, this.#minus(returnable, returned))
    return returned
  }

  /** Removes and returns the reservation, or returns undefined if it does not exist. */
  take(id: string): OpenReservation | undefined {
    const index = this.#indexOf(id)
    return index < 0 ? undefined : this.#entries.splice(index, 1)[0]?.reservation
  }

  /** The reservations that end now or before. */
  endedAt(now: number): OpenReservation[] {
    if (now < this.#nextEnd) return []
    const ended: OpenReservation[] = []
    this.#nextEnd = never
    for (const { reservation } of this.#entries)
      if (reservation.endsAt <= now) ended.push(reservation)
      else this.#nextEnd = Math.min(this.#nextEnd, reservation.endsAt)
    return ended
  }

  /** Removes the reservations that were made later than `tick`. */
  removeAfter(tick: number): void {
    while (this.#entries.length > 0 && (this.#entries.at(-1) as Entry).reservation.takenAt > tick) this.#entries.pop()
  }

  /** Limits the entries up to `last` to an amount. */
  #lower(last: number, { whole, fraction }: Amount): void {
    for (let i = last; i >= 0; i--) {
      const entry = this.#entries[i] as Entry
      const { returnable } = entry
      if (returnable.whole < whole || (returnable.whole === whole && returnable.fraction <= fraction)) return
      entry.returnable = { whole, fraction }
    }
  }

  #minus(from: Amount, { whole, fraction }: Amount): Amount {
    const left = from.fraction - fraction
    return left < 0
      ? { whole: from.whole - whole - 1, fraction: left + this.#windowTicks }
      : { whole: from.whole - whole, fraction: left }
  }

  #indexOf(id: string): number {
    return this.#entries.findLastIndex(({ reservation }) => reservation.id === id)
  }

  /** Converts all fractions to the window of a rule that was edited. */
  #carry(band: Band): void {
    for (const entry of this.#entries) {
      const { whole, fraction } = entry.returnable
      entry.returnable = { whole, fraction: carriedFraction(fraction, this.#windowTicks, band) }
    }
    this.#windowTicks = band.windowTicks
  }
}
