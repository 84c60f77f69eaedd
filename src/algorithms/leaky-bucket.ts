/**
 * Leaky bucket: a queue of `capacity` permits that drains steadily at `refillTokens` per window. A request is accepted
 * if it fits and released when the water ahead of it has drained, so releases are evenly spaced.
 *
 * State: [whole, fraction, at, windowTicks], the water. The free room above it behaves as a token bucket's level does,
 * so the same arithmetic serves both.
 */
import type { Algorithm, Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { Cells } from './cells.js'
import { carriedFraction, exactTicksUntil, full, type Level, type LevelState, refilled, ticksUntil } from './level.js'

export const leakyBucket: Algorithm<LevelState> = {
  createBuckets: () => new Cells(),

  /** A patience shorter than the queue refuses too: the caller would not wait for its turn. */
  step(state, band, permits, now, patience): Step<LevelState> {
    const { whole, fraction } = roomAt(state, band, now)
    const wait = waitFor(whole, fraction, band, permits, patience)
    const allowed = permits === 0 || wait === 0
    const charged = allowed && permits > 0
    const left = charged ? whole - permits : whole
    const steppedBack = state !== undefined && now < (state[2] as number)
    return {
      allowed,
      delay: charged ? exactTicksUntil(whole, fraction, band.capacity, band) : 0,
      retryAfter: allowed ? 0 : wait,
      remaining: left,
      resetAt: now + ticksUntil(left, fraction, band.capacity, band),
      change: charged || steppedBack ? written(left, fraction, band, now) : undefined,
    }
  },

  /** A place in the middle of the queue stays empty: filling it would bring two releases together. */
  refund(state, band, permits, now, grantedAt) {
    const { whole, fraction } = roomAt(state, band, now)
    const isFull = whole + permits >= band.capacity
    const [after, rest] = isFull ? [band.capacity, 0] : [whole + permits, fraction]
    const lastInLine = now + ticksUntil(after, rest, band.capacity, band)
    return grantedAt > now && lastInLine > Math.ceil(grantedAt) ? undefined : written(after, rest, band, now)
  },

  expiresAt(state, band) {
    const { whole, fraction } = stored(state, band)
    return (state[2] as number) + ticksUntil(whole, fraction, band.capacity, band)
  },
}

function waitFor(whole: number, fraction: number, band: Band, permits: number, patience: number): number {
  if (permits > band.capacity) return Number.POSITIVE_INFINITY
  const untilRoom = ticksUntil(whole, fraction, permits, band)
  if (patience === 0) return untilRoom
  return Math.max(untilRoom, ticksUntil(whole, fraction, band.capacity, band) - patience)
}

function roomAt(state: LevelState | undefined, band: Band, now: number): Level {
  if (state === undefined) return full(band)
  return refilled(stored(state, band), band, Math.max(0, now - (state[2] as number)))
}

/** The room above the water as written, under a band that may have changed since; rounded against the caller. */
function stored(state: LevelState, band: Band): Level {
  const [whole, fraction, window] = [state[0] as number, state[1] as number, state[3] as number]
  if (whole >= band.capacity) return { whole: 0, fraction: 0 }
  return fraction === 0
    ? { whole: band.capacity - whole, fraction: 0 }
    : { whole: band.capacity - whole - 1, fraction: carriedFraction(window - fraction, window, band) }
}

function written(whole: number, fraction: number, band: Band, now: number): LevelState {
  return fraction === 0
    ? [band.capacity - whole, 0, now, band.windowTicks]
    : [band.capacity - whole - 1, band.windowTicks - fraction, now, band.windowTicks]
}
