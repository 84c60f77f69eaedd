import { maxDebt } from '../../algorithms/answer.js'
import type { Band } from '../../core/rule.js'
import {
  divideDown,
  divideUp,
  forcedPermits,
  larger,
  type Model,
  resultAt,
  scaleTick,
  scaleUsed,
  sizes,
  smaller,
} from './model.js'

/** The state of the last write. A unit is 1/window permit, so that each tick adds or drains exactly `refillTokens` units. */
interface Written {
  readonly units: bigint
  readonly at: bigint
  readonly window: bigint
  /** Leaky bucket: true if a forced charge has added water above the capacity. */
  readonly inDebt?: boolean
}

export function tokenModel(from?: Written): Model {
  let written = from
  /** The level at the last touch. */
  let units = 0n
  const write = (value: bigint, band: Band, now: bigint): void => {
    units = value
    written = { units, at: now, window: sizes(band).window }
  }
  return {
    touch(band, now) {
      const { capacity, refill, window } = sizes(band)
      units = capacity * window
      if (written === undefined) return
      const level = carried(written.units, written.window, window)
      units = smaller(capacity * window, level + larger(0n, now - written.at) * refill)
      if (now < written.at) write(units, band, now)
    },
    peek(band, permits, now, maxWaitTicks) {
      const { capacity, refill, window } = sizes(band)
      if (permits > capacity) return resultAt(undefined, now, maxWaitTicks)
      return resultAt(now + larger(0n, divideUp(permits * window - units, refill)), now, maxWaitTicks)
    },
    charge: (band, permits, now) => write(units - permits * sizes(band).window, band, now),
    /** Refunds the permits unless a later request waits. */
    refund(band, permits, now, grantedAt) {
      if (written === undefined) return
      const { capacity, refill, window } = sizes(band)
      if (grantedAt > now && units + (grantedAt - now) * refill < 0n) return
      write(smaller(units + permits * window, capacity * window), band, now)
    },
    force(band, permits, now) {
      const { window } = sizes(band)
      write(units - forcedPermits(band, permits, divideDown(units, window)) * window, band, now)
    },
    remaining: (band) => larger(0n, divideDown(units, sizes(band).window)),
    resetAt(band, now) {
      const { capacity, refill, window } = sizes(band)
      return now + divideUp(capacity * window - units, refill)
    },
    scale(change, now) {
      this.touch(change.from, now)
      const { capacity, window } = sizes(change.from)
      write(change.shares * window - scaleUsed(capacity * window - units, change), change.from, now)
    },
    isUnused: (band) => units >= sizes(band).capacity * sizes(band).window,
    copy: () => tokenModel(written),
  }
}

export function leakyModel(from?: Written): Model {
  let written = from
  /** The water at the last touch. */
  let water = 0n
  const write = (value: bigint, band: Band, now: bigint): void => {
    water = value
    const { capacity, window } = sizes(band)
    written = { units: water, at: now, window, inDebt: water > capacity * window }
  }
  return {
    touch(band, now) {
      const { capacity, refill, window } = sizes(band)
      water = 0n
      if (written === undefined) return
      const kept = -carried(-written.units, written.window, window)
      const limit = capacity + (written.inDebt ? BigInt(maxDebt(band)) : 0n)
      water = larger(0n, smaller(limit * window, kept) - larger(0n, now - written.at) * refill)
      if (now < written.at) write(water, band, now)
    },
    peek(band, permits, now, maxWaitTicks) {
      const { capacity, refill, window } = sizes(band)
      if (permits > capacity) return resultAt(undefined, now, maxWaitTicks)
      const untilRoom = larger(0n, divideUp(water + (permits - capacity) * window, refill))
      const tooLong = maxWaitTicks === 0n ? 0n : larger(0n, divideUp(water - maxWaitTicks * refill, refill))
      const retryAfter = larger(untilRoom, tooLong)
      if (retryAfter > 0n) return { allowed: false, grantedAt: now, delay: 0, retryAfter }
      const delay = Number(water / refill) + Number(water % refill) / Number(refill)
      return { allowed: true, grantedAt: now + divideUp(water, refill), delay, retryAfter: 0n }
    },
    charge: (band, permits, now) => write(water + permits * sizes(band).window, band, now),
    /**
     * Refunds the permits unless a later request waits. Allows for one tick, because `grantedAt` has lost its fraction. A
     * refund as of now refers to no particular slot.
     */
    refund(band, permits, now, grantedAt) {
      if (written === undefined) return
      const { refill, window } = sizes(band)
      const left = larger(0n, water - permits * window)
      const isLast =
        grantedAt < now
          ? now + divideUp(water, refill) <= grantedAt + divideUp(permits * window, refill) + 1n
          : now + divideUp(left, refill) <= grantedAt + 1n
      if (grantedAt === now || isLast) write(left, band, now)
    },
    force(band, permits, now) {
      const { capacity, window } = sizes(band)
      write(water + forcedPermits(band, permits, divideDown(capacity * window - water, window)) * window, band, now)
    },
    remaining(band) {
      const { capacity, window } = sizes(band)
      return larger(0n, divideDown(capacity * window - water, window))
    },
    resetAt: (band, now) => now + divideUp(water, sizes(band).refill),
    scale(change, now) {
      this.touch(change.from, now)
      const { capacity, window } = sizes(change.from)
      const inDebt = water > capacity * window
      written = { units: scaleUsed(water, change), at: now, window, inDebt }
    },
    isUnused: () => water === 0n,
    copy: () => leakyModel(written),
  }
}

interface WrittenInterval {
  readonly tokens: bigint
  readonly start: bigint
  /** The release time of the last waiting requests, if known, and the number of their permits, if known. */
  readonly last?: { readonly at: bigint; readonly permits: bigint | undefined } | undefined
}

/** Refills at the end of each interval. Intervals start when a full bucket is used. */
export function intervalModel(from?: WrittenInterval): Model {
  let written = from
  let tokens = 0n
  let start = 0n
  let last: WrittenInterval['last']
  const reachedAt = (target: bigint, band: Band, now: bigint): bigint =>
    target <= tokens ? now : start + divideUp(target - tokens, sizes(band).refill) * sizes(band).window
  const join = (permits: bigint, at: bigint, end: bigint): WrittenInterval['last'] => {
    if (last?.at === at) return { at, permits: last.permits && last.permits + permits }
    if (last !== undefined && end < last.at) return last
    return { at, permits: at === end ? undefined : permits }
  }
  return {
    touch(band, now) {
      const { capacity, refill, window } = sizes(band)
      tokens = capacity
      start = now
      last = written?.last !== undefined && written.last.at > now ? written.last : undefined
      if (written === undefined) return
      if (now < written.start) written = { ...written, start: now }
      const windows = (now - written.start) / window
      tokens = smaller(capacity, written.tokens + windows * refill)
      if (tokens < capacity) start = written.start + windows * window
      else last = undefined
    },
    peek(band, permits, now, maxWaitTicks) {
      return resultAt(permits > sizes(band).capacity ? undefined : reachedAt(permits, band, now), now, maxWaitTicks)
    },
    charge(band, permits, now, grantedAt) {
      if (grantedAt > now) last = join(permits, grantedAt, reachedAt(0n, band, now))
      tokens -= permits
      written = { tokens, start, last }
    },
    /** Refunds the permits unless a later request waits. */
    refund(band, permits, now, grantedAt) {
      if (written === undefined) return
      const lastRelease = larger(last?.at ?? 0n, reachedAt(0n, band, now))
      if (grantedAt > now && lastRelease > grantedAt) return
      if (last?.at === grantedAt && last.permits !== undefined)
        last = last.permits > permits ? { at: last.at, permits: last.permits - permits } : undefined
      tokens = smaller(sizes(band).capacity, tokens + permits)
      if (tokens === sizes(band).capacity) last = undefined
      written = { tokens, start, last }
    },
    force(band, permits) {
      tokens -= forcedPermits(band, permits, tokens)
      written = { tokens, start, last }
    },
    remaining: () => larger(0n, tokens),
    resetAt: (band, now) => reachedAt(sizes(band).capacity, band, now),
    scale(change, now) {
      this.touch(change.from, now)
      const waiting = last && { at: last.at, permits: last.permits && scaleUsed(last.permits, change) }
      written = {
        tokens: change.shares - scaleUsed(sizes(change.from).capacity - tokens, change),
        start: change.from.windowTicks === change.to.windowTicks ? start : scaleTick(start, change, now),
        last: waiting,
      }
    },
    isUnused: (band) => tokens >= sizes(band).capacity,
    copy: () => intervalModel(written),
    level: () => tokens,
  }
}

/** Converts units to another window. Whole permits stay, and the fraction is rounded down. */
function carried(units: bigint, from: bigint, to: bigint): bigint {
  const whole = divideDown(units, from)
  return whole * to + ((units - whole * from) * to) / from
}
