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
  createBuckets: () => new Cells(4),

  /** A patience shorter than the queue refuses too: the caller would not wait for its turn. */
  step(state, band, permits, now, patience): Step<LevelState> {
    const room = roomAt(state, band, now)
    const wait = waitFor(room, band, permits, patience)
    const allowed = permits === 0 || wait === 0
    const after = allowed && permits > 0 ? { whole: room.whole - permits, fraction: room.fraction } : room
    const steppedBack = state !== undefined && now < (state[2] as number)
    return {
      allowed,
      delay: allowed && permits > 0 ? exactTicksUntil(room, band.capacity, band) : 0,
      retryAfter: allowed ? 0 : wait,
      remaining: Math.max(0, after.whole),
      resetAt: now + ticksUntil(after, band.capacity, band),
      change: after !== room || steppedBack ? written(after, band, now) : undefined,
    }
  },

  /** A place in the middle of the queue stays empty: filling it would bring two releases together. */
  refund(state, band, permits, now, grantedAt) {
    const room = roomAt(state, band, now)
    const after = room.whole + permits >= band.capacity ? full(band) : { ...room, whole: room.whole + permits }
    const lastInLine = now + ticksUntil(after, band.capacity, band)
    return grantedAt > now && lastInLine > Math.ceil(grantedAt) ? undefined : written(after, band, now)
  },

  expiresAt(state, band) {
    return (state[2] as number) + ticksUntil(stored(state, band), band.capacity, band)
  },
}

function waitFor(room: Level, band: Band, permits: number, patience: number): number {
  if (permits > band.capacity) return Number.POSITIVE_INFINITY
  const untilRoom = ticksUntil(room, permits, band)
  return patience === 0 ? untilRoom : Math.max(untilRoom, ticksUntil(room, band.capacity, band) - patience)
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

function written(room: Level, band: Band, now: number): LevelState {
  return room.fraction === 0
    ? [band.capacity - room.whole, 0, now, band.windowTicks]
    : [band.capacity - room.whole - 1, band.windowTicks - room.fraction, now, band.windowTicks]
}
