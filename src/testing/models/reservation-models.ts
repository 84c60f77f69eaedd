import type { Band } from '../../core/rule.js'
import { divideDown, divideUp, forcedPermits, larger, type Model, resultAt, sizes, smaller } from './model.js'

/** A reference model whose permits can be returned as of the time at which they were taken. The clock must not step back. */
export interface ReservableModel extends Model {
  /** Marks permits that have just been taken. At `refundAt`, they are returned. */
  open(id: string, permits: bigint, now: bigint, refundAt: bigint | undefined): void
  /** Returns permits of a reservation, which ends. Has no effect if there is no such reservation. */
  giveBack(id: string, band: Band, permits: bigint, now: bigint): void
}

interface TokenEvent {
  readonly at: bigint
  /** The permits that were taken, or returned if negative. */
  permits: bigint
  readonly id?: string
  readonly refundAt?: bigint | undefined
}

/**
 * A token bucket that keeps everything that ever happened to it. Its level is that of a bucket in which exactly this has happened:
 * permits that are returned are removed from the event that took them.
 */
export function replayedTokenModel(from: readonly TokenEvent[] = []): ReservableModel {
  let events = from.map((event) => ({ ...event }))
  let units = 0n
  const replay = (band: Band, now: bigint): bigint => {
    const { capacity, refill, window } = sizes(band)
    let level = capacity * window
    let last = events[0]?.at ?? now
    for (const { at, permits } of [...events, { at: now, permits: 0n }]) {
      level = smaller(capacity * window, level + (at - last) * refill)
      level = smaller(capacity * window, level - permits * window)
      last = at
    }
    return level
  }
  return {
    touch(band, now) {
      events = events.map((event) =>
        event.refundAt !== undefined && event.refundAt <= now ? { at: event.at, permits: 0n } : event,
      )
      units = replay(band, now)
    },
    peek(band, permits, now, maxWaitTicks) {
      const { capacity, refill, window } = sizes(band)
      if (permits > capacity) return resultAt(undefined, now, maxWaitTicks)
      return resultAt(now + larger(0n, divideUp(permits * window - units, refill)), now, maxWaitTicks)
    },
    charge(band, permits, now) {
      events.push({ at: now, permits })
      units = replay(band, now)
    },
    refund(band, permits, now) {
      if (events.length === 0) return
      events.push({ at: now, permits: -permits })
      units = replay(band, now)
    },
    force(band, permits, now) {
      this.charge(band, forcedPermits(band, permits, divideDown(units, sizes(band).window)), now, now)
    },
    open(id, permits, _now, refundAt) {
      const { at } = events.pop() as TokenEvent
      // A reservation that has expired long ago may have had the same id.
      events = events.map((event) => (event.id === id ? { at: event.at, permits: event.permits } : event))
      events.push({ at, permits, id, refundAt })
    },
    giveBack(id, band, permits, now) {
      events = events.map((event) => (event.id === id ? { at: event.at, permits: event.permits - permits } : event))
      units = replay(band, now)
    },
    remaining: (band) => larger(0n, divideDown(units, sizes(band).window)),
    resetAt(band, now) {
      const { capacity, refill, window } = sizes(band)
      return now + divideUp(capacity * window - units, refill)
    },
    isUnused: (band) => units >= sizes(band).capacity * sizes(band).window,
    copy: () => replayedTokenModel(events),
  }
}

interface Open {
  readonly permits: bigint
  readonly takenAt: bigint
  readonly refundAt: bigint | undefined
  /** The first index in the list of missing permits that counts for the reservation. */
  readonly from: number
}

/**
 * Adds reservations to a model. The permits of a window are returned to their window. Those of a bucket with a level are returned
 * as far as they have been missing from it ever since, which is recomputed from everything that was ever missing.
 */
export function reservableModel(model: Model): ReservableModel {
  const open = new Map<string, Open>()
  const missing: bigint[] = []
  const observe = (band: Band): void => {
    if (model.level !== undefined) missing.push(sizes(band).capacity - model.level())
  }
  return {
    ...model,
    touch(band, now) {
      model.touch(band, now)
      observe(band)
      for (const [id, { permits, refundAt }] of open)
        if (refundAt !== undefined && refundAt <= now) this.giveBack(id, band, permits, now)
    },
    open(id, permits, now, refundAt) {
      // Before the permits were taken, fewer were missing.
      open.set(id, { permits, takenAt: now, refundAt, from: missing.length })
    },
    giveBack(id, band, permits, now) {
      const reservation = open.get(id)
      open.delete(id)
      if (reservation === undefined) return
      const { takenAt, from } = reservation
      if (model.level === undefined) {
        model.refund(band, permits, now, takenAt)
        return
      }
      model.touch(band, now)
      observe(band)
      const returned = missing.slice(from).reduce(smaller, permits)
      model.refund(band, returned, now, now)
      model.touch(band, now)
      for (let i = from; i < missing.length; i++) missing[i] = (missing[i] as bigint) - returned
    },
  }
}
