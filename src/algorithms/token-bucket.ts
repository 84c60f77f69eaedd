/**
 * Token bucket: `capacity` permits at most, refilled steadily at `refillTokens` per window, full at first.
 *
 * State: [whole, fraction, at, windowTicks], the level as it was at `at`. Nothing is rounded away, so two close requests
 * lose nothing between them. Callers that wait have taken their permits already: the level is then below zero.
 */
import type { Algorithm, Step } from '../core/algorithm.js'
import type { Band } from '../core/rule.js'
import { Cells } from './cells.js'
import { carriedFraction, full, type Level, type LevelState, refilled, ticksUntil } from './level.js'

export const tokenBucket: Algorithm<LevelState> = {
  createBuckets: () => new Cells(),

  step(state, band, permits, now, patience): Step<LevelState> {
    const { whole, fraction } = levelAt(state, band, now)
    const wait = permits > band.capacity ? Number.POSITIVE_INFINITY : ticksUntil(whole, fraction, permits, band)
    const allowed = permits === 0 || wait <= patience
    const charged = allowed && permits > 0
    const left = charged ? whole - permits : whole
    const steppedBack = state !== undefined && now < (state[2] as number)
    return {
      allowed,
      delay: charged ? wait : 0,
      retryAfter: allowed ? 0 : wait - patience,
      remaining: Math.max(0, left),
      resetAt: now + ticksUntil(left, fraction, band.capacity, band),
      change: charged || steppedBack ? [left, fraction, now, band.windowTicks] : undefined,
    }
  },

  refund(state, band, permits, now) {
    const { whole, fraction } = levelAt(state, band, now)
    const isFull = whole + permits >= band.capacity
    return [isFull ? band.capacity : whole + permits, isFull ? 0 : fraction, now, band.windowTicks]
  },

  expiresAt(state, band) {
    const { whole, fraction } = stored(state, band)
    return (state[2] as number) + ticksUntil(whole, fraction, band.capacity, band)
  },
}

function levelAt(state: LevelState | undefined, band: Band, now: number): Level {
  if (state === undefined) return full(band)
  return refilled(stored(state, band), band, Math.max(0, now - (state[2] as number)))
}

/** The level as written, under a band that may have changed since. */
function stored(state: LevelState, band: Band): Level {
  return { whole: state[0] as number, fraction: carriedFraction(state[1] as number, state[3] as number, band) }
}
