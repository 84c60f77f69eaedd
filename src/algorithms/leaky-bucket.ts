/**
 * Leaky bucket: a queue of `capacity` permits that drains continuously by `refillTokens` per window. A request is accepted if
 * it fits, and released when the water ahead of it has drained, so that releases are evenly spaced.
 *
 * State: [whole, fraction, at, windowTicks], the amount of water. The free room above the water behaves like the level of a
 * token bucket, so both use the same arithmetic. A forced charge may add water above the capacity; `inDebt` is then added to
 * windowTicks. Water above the capacity without this mark was written under a larger band and does not count.
 */

import type { Band } from '../core/rule.js'
import { forcedPermits, maxDebt } from './answer.js'
import { type CellAlgorithm, put } from './cells.js'
import { carriedFraction, exactTicksUntil, refill, ticksUntil } from './level.js'

export const leakyBucket: CellAlgorithm = {
  stamp: 2,

  /** Also denies a request whose maximum wait is shorter than its delay in the queue. */
  step(cells, start, band, permits, now, maxWaitTicks, out) {
    const { next } = out
    putRoom(next, cells, start, band, now)
    const whole = next[0] as number
    const fraction = next[1] as number
    const wait = waitFor(whole, fraction, band, permits, maxWaitTicks)
    const allowed = permits === 0 || wait === 0
    const charged = allowed && permits > 0
    const left = charged ? whole - permits : whole
    out.allowed = allowed
    out.delay = charged ? exactTicksUntil(whole, fraction, band.capacity, band) : 0
    out.retryAfter = allowed ? 0 : wait
    out.remaining = left > 0 ? left : 0
    out.resetAt = now + ticksUntil(left, fraction, band.capacity, band)
    out.changes = charged || (start >= 0 && now < (cells[start + 2] as number))
    putWater(next, left, fraction, band, now)
  },

  /**
   * A slot in the middle of the queue is not refunded, even after its release time, because two later releases would then be
   * too close together. `grantedAt` has lost the fraction of its delay, so it may be one tick too early. A refund as of now
   * refers to no particular slot.
   */
  refund(cells, start, band, permits, now, grantedAt, next) {
    putRoom(next, cells, start, band, now)
    const slotAt = Math.ceil(grantedAt)
    const slotEndsAt = slotAt + ticksUntil(0, 0, permits, band)
    const endsAt = now + ticksUntil(next[0] as number, next[1] as number, band.capacity, band)
    const isFull = (next[0] as number) + permits >= band.capacity
    const whole = isFull ? band.capacity : (next[0] as number) + permits
    const fraction = isFull ? 0 : (next[1] as number)
    const lastRelease = now + ticksUntil(whole, fraction, band.capacity, band)
    putWater(next, whole, fraction, band, now)
    if (slotAt < now) return endsAt <= slotEndsAt + 1
    return slotAt === now || lastRelease <= slotAt + 1
  },

  force(cells, start, band, permits, now, next) {
    putRoom(next, cells, start, band, now)
    const whole = next[0] as number
    putWater(next, whole - forcedPermits(band, permits, whole), next[1] as number, band, now)
  },

  expiresAt(cells, start, band) {
    const whole = wholeRoom(cells, start, band)
    return (cells[start + 2] as number) + ticksUntil(whole, roomFraction(cells, start, band), band.capacity, band)
  },
}

function waitFor(whole: number, fraction: number, band: Band, permits: number, maxWaitTicks: number): number {
  if (permits > band.capacity) return Number.POSITIVE_INFINITY
  const untilRoom = ticksUntil(whole, fraction, permits, band)
  if (maxWaitTicks === 0) return untilRoom
  return Math.max(untilRoom, ticksUntil(whole, fraction, band.capacity, band) - maxWaitTicks)
}

function putRoom(next: Float64Array, cells: Float64Array, start: number, band: Band, now: number): void {
  if (start < 0) {
    next[0] = band.capacity
    next[1] = 0
    return
  }
  const elapsed = Math.max(0, now - (cells[start + 2] as number))
  refill(next, wholeRoom(cells, start, band), roomFraction(cells, start, band), band, elapsed)
}

/** The room above the stored water, under a band that may have changed since. Rounded down, never in favour of the request. */
function wholeRoom(cells: Float64Array, start: number, band: Band): number {
  const water = cells[start] as number
  if (water >= limitOf(cells, start, band)) return band.capacity - limitOf(cells, start, band)
  return band.capacity - water - ((cells[start + 1] as number) > 0 ? 1 : 0)
}

function roomFraction(cells: Float64Array, start: number, band: Band): number {
  const fraction = cells[start + 1] as number
  const window = (cells[start + 3] as number) % inDebt
  return fraction === 0 || (cells[start] as number) >= limitOf(cells, start, band)
    ? 0
    : carriedFraction(window - fraction, window, band)
}

/** Windows are shorter than this. */
const inDebt = 2 ** 46

/** The most water that counts. */
const limitOf = (cells: Float64Array, start: number, band: Band): number =>
  (cells[start + 3] as number) >= inDebt ? band.capacity + maxDebt(band) : band.capacity

function putWater(next: Float64Array, whole: number, fraction: number, band: Band, now: number): void {
  const window = whole < 0 ? band.windowTicks + inDebt : band.windowTicks
  if (fraction === 0) put(next, band.capacity - whole, 0, now, window)
  else put(next, band.capacity - whole - 1, band.windowTicks - fraction, now, window)
}
