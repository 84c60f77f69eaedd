import { type Buckets, type CountedAs, newStep, type Step } from '../../core/algorithm.js'
import { algorithmTraits } from '../../core/algorithm-traits.js'
import { expiredTicks, type OnExpire } from '../../core/reservations/reservation.js'
import type { ReservedPermits } from '../../core/reservations/reservation-storage.js'
import type { Band } from '../../core/rule.js'
import { type Amount, OpenReservations } from './open-reservations.js'

/** The permits that a reservation takes from every band of a rule. */
export interface TakenPermits {
  readonly id: string
  readonly permits: number
  /** The tick at which the reservation expires. */
  readonly expiresAt: number
  readonly onExpire: OnExpire
}

/**
 * Buckets with open reservations. Every access first records what is missing from the bucket and returns the permits of
 * reservations that have expired, so that neither needs a timer. Used from the first reservation of a rule on. Buckets without
 * open reservations behave as before.
 */
export class ReservedBuckets implements Buckets {
  readonly #buckets: Buckets
  readonly #bySlot = new Map<number, OpenReservations>()
  readonly #current = newStep()

  constructor(buckets: Buckets) {
    this.#buckets = buckets
  }

  bind(band: Band, definition?: Band): void {
    this.#buckets.bind?.(band, definition)
  }

  /** Converts the open reservations together with their bucket. */
  rebase(slot: number, band: Band, now: number): void {
    const list = this.#bySlot.get(slot)
    if (list === undefined) {
      this.#buckets.rebase?.(slot, band, now)
      return
    }
    this.#update(slot, band, now)
    const before = this.#countedAs(slot, band).capacity
    this.#buckets.rebase?.(slot, band, now)
    const { capacity } = this.#countedAs(slot, band)
    if (capacity !== before) list.scale(capacity, before)
  }

  countedAs(slot: number, band: Band): CountedAs {
    return this.#countedAs(slot, band)
  }

  step(slot: number, band: Band, permits: number, now: number, maxWaitTicks: number, out: Step): void {
    this.#update(slot, band, now)
    this.#buckets.step(slot, band, permits, now, maxWaitTicks, out)
  }

  stepQuickly(slot: number, band: Band, permits: number, now: number, out: Step): boolean {
    return !this.#bySlot.has(slot) && (this.#buckets.stepQuickly?.(slot, band, permits, now, out) ?? false)
  }

  write(slot: number, next: Float64Array): void {
    this.#buckets.write(slot, next)
  }

  refund(slot: number, band: Band, permits: number, now: number, grantedAt: number): void {
    this.#update(slot, band, now)
    this.#buckets.refund(slot, band, permits, now, grantedAt)
  }

  force(slot: number, band: Band, permits: number, now: number): void {
    this.#update(slot, band, now)
    this.#buckets.force(slot, band, permits, now)
  }

  expiresAt(slot: number, band: Band): number {
    return this.#buckets.expiresAt(slot, band)
  }

  clear(slot: number): void {
    this.#bySlot.delete(slot)
    this.#buckets.clear(slot)
  }

  /** The number of open reservations of a bucket. */
  openIn(slot: number, band: Band, now: number): number {
    this.#update(slot, band, now)
    return this.#bySlot.get(slot)?.size ?? 0
  }

  /** The open reservations of a bucket. Unlike `openIn`, leaves out those that have expired. */
  reservedIn(slot: number, band: Band, now: number): ReservedPermits {
    this.#update(slot, band, now)
    const counted = this.#countedAs(slot, band)
    const open = this.#bySlot.get(slot)?.openAt(now, counted.band) ?? []
    const permits = open.reduce((sum, it) => sum + it.permits, 0) / counted.perPermit
    return { reservations: open.length, permits: Math.ceil(permits) }
  }

  /** Adds a reservation whose permits have just been taken. */
  open(slot: number, band: Band, { id, permits, expiresAt, onExpire }: TakenPermits, now: number): void {
    this.#update(slot, band, now)
    const counted = this.#countedAs(slot, band)
    const list = this.#bySlot.get(slot) ?? new OpenReservations(counted.band)
    this.#bySlot.set(slot, list)
    // After two windows, no window contains the permits any more.
    const lostAt = isRefilled(band) ? Number.POSITIVE_INFINITY : now + 2 * band.windowTicks
    const isRefunded = onExpire === 'REFUND' && expiresAt < lostAt
    const endsAt = isRefunded ? expiresAt : Math.min(lostAt, expiresAt + expiredTicks)
    const { whole, fraction } = this.#missing(slot, counted, now)
    list.add({ id, permits: permits * counted.perPermit, takenAt: now, endsAt, isRefunded, whole, fraction })
  }

  /** Replaces the permits of a reservation with the actual ones. */
  settle(slot: number, band: Band, { id, permits }: Pick<TakenPermits, 'id' | 'permits'>, actual: number, now: number) {
    this.rebase(slot, band, now)
    this.#update(slot, band, now)
    const counted = this.#countedAs(slot, band)
    this.#giveBack(slot, counted, id, Math.max(0, permits - actual) * counted.perPermit, now)
    if (actual > permits) this.#buckets.force(slot, band, actual - permits, now)
  }

  #update(slot: number, band: Band, now: number): void {
    const list = this.#bySlot.get(slot)
    if (list === undefined) return
    const counted = this.#countedAs(slot, band)
    if (isRefilled(band)) {
      list.observe(this.#missing(slot, counted, now), counted.band)
      this.#add(slot, counted, list.giveBackEnded(now), now)
    } else {
      // If the clock has stepped back, it is unknown which window contains the permits now.
      list.removeAfter(now)
      for (const { permits, takenAt, isRefunded } of list.takeEnded(now))
        if (isRefunded) counted.buckets.refund(slot, counted.band, permits, now, takenAt)
    }
    if (list.size === 0) this.#bySlot.delete(slot)
  }

  #countedAs(slot: number, band: Band): CountedAs {
    return (
      this.#buckets.countedAs?.(slot, band) ?? { buckets: this.#buckets, band, perPermit: 1, capacity: band.capacity }
    )
  }

  /** Removes a reservation and returns `permits` of it, as far as possible. */
  #giveBack(slot: number, counted: CountedAs, id: string, permits: number, now: number): void {
    const list = this.#bySlot.get(slot)
    if (list === undefined) return
    if (isRefilled(counted.band)) {
      const returned = list.giveBack(id, permits)
      if (returned !== undefined) this.#add(slot, counted, returned, now)
    } else {
      const taken = list.take(id)
      if (taken !== undefined && permits > 0) counted.buckets.refund(slot, counted.band, permits, now, taken.takenAt)
    }
  }

  /** Adds permits to a bucket that refills. It has room for them. */
  #add(slot: number, { buckets, band }: CountedAs, { whole, fraction }: Amount, now: number): void {
    if (whole > 0) buckets.refund(slot, band, whole, now, now)
    if (fraction === 0) return
    const { next } = this.#current
    buckets.step(slot, band, 0, now, 0, this.#current)
    const sum = (next[1] as number) + fraction
    const carry = sum >= band.windowTicks ? 1 : 0
    next[0] = (next[0] as number) + carry
    next[1] = sum - carry * band.windowTicks
    buckets.write(slot, next)
  }

  /** The permits that are missing from a bucket that refills. */
  #missing(slot: number, { buckets, band }: CountedAs, now: number): Amount {
    const { next } = this.#current
    buckets.step(slot, band, 0, now, 0, this.#current)
    const whole = band.capacity - (next[0] as number)
    const fraction = band.refill === 'STEADY' ? (next[1] as number) : 0
    return fraction === 0 ? { whole, fraction } : { whole: whole - 1, fraction: band.windowTicks - fraction }
  }
}

/** True if the bucket has a level. The permits of other buckets belong to a window. */
const isRefilled = ({ algorithm }: Band): boolean => algorithmTraits[algorithm].isRefilled
