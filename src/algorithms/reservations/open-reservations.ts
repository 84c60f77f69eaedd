import { algorithmTraits } from '../../core/algorithm-traits.js'
import { expiredTicks } from '../../core/reservations/reservation.js'
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

/** True unless the reservation has expired. Buckets keep expired ones a while longer, unless their permits are refunded. */
export function isOpenAt(
  { takenAt, endsAt, isRefunded }: Pick<OpenReservation, 'takenAt' | 'endsAt' | 'isRefunded'>,
  { algorithm, windowTicks }: Band,
  now: number,
): boolean {
  // The permits of a window end with it, which may be before the reservation does.
  const isLost = !algorithmTraits[algorithm].isRefilled && endsAt === takenAt + 2 * windowTicks
  return now < (isRefunded || isLost ? endsAt : endsAt - expiredTicks)
}

/** A reservation in a list. One flat object, because a list may have thousands of them. */
export interface ListedReservation extends OpenReservation {
  permits: number
  /** The permits that are returnable: a whole number, and a fraction in units of 1 / windowTicks. */
  whole: number
  fraction: number
}

const never = Number.POSITIVE_INFINITY
const nothing: Amount = { whole: 0, fraction: 0 }

const isMore = (one: Amount, other: Amount): boolean =>
  one.whole > other.whole || (one.whole === other.whole && one.fraction > other.fraction)

/** The lesser amount; undefined if both are. */
const least = (one: Amount | undefined, other: Amount | undefined): Amount | undefined =>
  one === undefined || (other !== undefined && isMore(one, other)) ? other : one

function setReturnable(entry: ListedReservation, { whole, fraction }: Amount): void {
  entry.whole = whole
  entry.fraction = fraction
}

/** The part of `permits` that is returnable. */
const part = (permits: number, returnable: Amount): Amount =>
  returnable.whole < permits ? returnable : { whole: permits, fraction: 0 }

/**
 * The open reservations of a bucket, oldest first. Twin of stores/redis/lua/open-reservations.lua.
 *
 * Permits are returned as of the time at which they were taken: the bucket must then be as if they had never been taken. If a
 * bucket that refills would have been full in between, it would not have refilled further, and what it has refilled since must
 * not be returned again. Each entry therefore has the least number of permits that have been missing from the bucket since it
 * was made. No more than these are returnable. They never decrease from one entry to the next, because a later one is younger.
 */
export class OpenReservations {
  readonly #entries: ListedReservation[] = []
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

  /**
   * Adds a reservation whose permits have just been taken from the bucket. Its returnable amount is the amount that is missing from
   * the bucket now. The list keeps and changes the object.
   */
  add(entry: ListedReservation): void {
    this.#entries.push(entry)
    this.#nextEnd = Math.min(this.#nextEnd, entry.endsAt)
  }

  /** Records the permits that are missing now. Removes reservations with nothing left to return. */
  observe(missing: Amount, band: Band): void {
    if (this.#windowTicks !== band.windowTicks) this.#carry(band)
    this.#lower(this.#entries.length - 1, missing)
    const kept = this.#entries.findIndex(({ whole, fraction }) => whole > 0 || fraction > 0)
    if (kept !== 0) this.#entries.splice(0, kept < 0 ? this.#entries.length : kept)
  }

  /** Multiplies all amounts by to/from, rounded down, because the bucket is counted in another unit from now on. */
  scale(to: number, from: number): void {
    for (const entry of this.#entries) {
      const { permits, whole, fraction } = entry
      const scaled = mulDiv(to, whole, from)
      // A product that is not exact counts as 0, because nothing must be returned twice.
      const rest = fraction * to < exactLimit ? Math.floor((fraction * to) / from) : 0
      const carried = Math.floor(rest / this.#windowTicks)
      entry.permits = mulDiv(to, permits, from)
      entry.whole = scaled + carried
      entry.fraction = rest - carried * this.#windowTicks
    }
  }

  /** Removes a reservation and returns the part of `permits` that is returnable; undefined if there is no such reservation. */
  giveBack(id: string, permits: number): Amount | undefined {
    const index = this.#indexOf(id)
    if (index < 0) return undefined
    const entry = this.#entries[index] as ListedReservation
    const returned = part(permits, entry)
    this.#entries.splice(index, 1)
    for (let i = index; i < this.#entries.length; i++) {
      const later = this.#entries[i] as ListedReservation
      setReturnable(later, this.#minus(later, returned))
    }
    this.#lower(index - 1, this.#minus(entry, returned))
    return { whole: returned.whole, fraction: returned.fraction }
  }

  /** Removes and returns the reservation, or returns undefined if it does not exist. */
  take(id: string): OpenReservation | undefined {
    const index = this.#indexOf(id)
    return index < 0 ? undefined : this.#entries.splice(index, 1)[0]
  }

  /** Removes and returns the reservations that end now or before. */
  takeEnded(now: number): OpenReservation[] {
    const ended: OpenReservation[] = []
    if (now < this.#nextEnd) return ended
    this.#keep((entry) => {
      if (entry.endsAt > now) return true
      ended.push(entry)
      return false
    })
    return ended
  }

  /**
   * Removes the reservations that end now or before, and returns the returnable part of the permits of those that are refunded.
   * Takes linear time: a client may let thousands of reservations end at the same time.
   */
  giveBackEnded(now: number): Amount {
    let returned: Amount = nothing
    if (now < this.#nextEnd) return returned
    /** The permits that each kept entry may return. The index is the number of entries before the reservation that ended. */
    const limits: (Amount | undefined)[] = []
    let kept = 0
    this.#keep((entry) => {
      setReturnable(entry, this.#minus(entry, returned))
      if (entry.endsAt > now) {
        kept += 1
        return true
      }
      const own = part(entry.isRefunded ? entry.permits : 0, entry)
      returned = this.#plus(returned, own)
      limits[kept] = this.#minus(entry, own)
      return false
    })
    let limit: Amount | undefined
    for (let i = kept; i > 0; i--) {
      limit = least(limits[i], limit)
      const entry = this.#entries[i - 1] as ListedReservation
      if (limit !== undefined && isMore(entry, limit)) setReturnable(entry, limit)
    }
    return returned
  }

  /** The reservations that are open at a tick. */
  openAt(now: number, band: Band): OpenReservation[] {
    return this.#entries.filter((entry) => isOpenAt(entry, band, now))
  }

  /** Removes the reservations that were made later than `tick`. */
  removeAfter(tick: number): void {
    while (this.#entries.length > 0 && (this.#entries.at(-1) as ListedReservation).takenAt > tick) this.#entries.pop()
  }

  /** Keeps the entries for which `isKept` returns true. It is called once for each, in order. */
  #keep(isKept: (entry: ListedReservation) => boolean): void {
    this.#nextEnd = never
    let kept = 0
    for (const entry of this.#entries) {
      if (!isKept(entry)) continue
      this.#nextEnd = Math.min(this.#nextEnd, entry.endsAt)
      this.#entries[kept++] = entry
    }
    this.#entries.length = kept
  }

  /** Limits the entries up to `last` to an amount. */
  #lower(last: number, amount: Amount): void {
    for (let i = last; i >= 0; i--) {
      const entry = this.#entries[i] as ListedReservation
      if (!isMore(entry, amount)) return
      setReturnable(entry, amount)
    }
  }

  #plus({ whole, fraction }: Amount, more: Amount): Amount {
    const sum = fraction + more.fraction
    return sum >= this.#windowTicks
      ? { whole: whole + more.whole + 1, fraction: sum - this.#windowTicks }
      : { whole: whole + more.whole, fraction: sum }
  }

  #minus(from: Amount, { whole, fraction }: Amount): Amount {
    const left = from.fraction - fraction
    return left < 0
      ? { whole: from.whole - whole - 1, fraction: left + this.#windowTicks }
      : { whole: from.whole - whole, fraction: left }
  }

  #indexOf(id: string): number {
    return this.#entries.findLastIndex((entry) => entry.id === id)
  }

  /** Converts all fractions to the window of a rule that was edited. */
  #carry(band: Band): void {
    for (const entry of this.#entries) {
      entry.fraction = carriedFraction(entry.fraction, this.#windowTicks, band)
    }
    this.#windowTicks = band.windowTicks
  }
}
