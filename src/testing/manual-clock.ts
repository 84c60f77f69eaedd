import { type Clock, ticksUp } from '../core/clock.js'

/** A clock whose time changes only by `advance`. */
export interface ManualClock extends Clock {
  now(): number
  /** Advances the time by milliseconds, with fractions down to a microsecond, and fires due timers in order. Negative values step back. */
  advance(ms: number): void
  schedule(ms: number, wake: () => void): () => void
}

interface Timer {
  readonly at: number
  readonly wake: () => void
}

/**
 * Creates a clock for tests that advances only on request.
 *
 * @example
 * const clock = manualClock(1_800_000_000_000)
 * const limiter = createLimiter({ capacity: 1, window: '1s', clock })
 * await limiter.consume('a') // allowed
 * clock.advance(1000)
 * await limiter.consume('a') // allowed again
 */
export function manualClock(startMs = 0): ManualClock {
  let nowTicks = Math.round(startMs * 1000)
  let timers: Timer[] = []
  return {
    now: () => nowTicks / 1000,
    advance(ms) {
      const target = nowTicks + Math.round(ms * 1000)
      for (let next = earliest(timers, target); next !== undefined; next = earliest(timers, target)) {
        timers = timers.filter((timer) => timer !== next)
        nowTicks = Math.max(nowTicks, next.at)
        next.wake()
      }
      nowTicks = target
    },
    schedule(ms, wake) {
      const timer = { at: nowTicks + ticksUp(ms), wake }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
  }
}

/** The earliest timer that is due at `target`. Of timers with the same time, the one that was scheduled first. */
function earliest(timers: readonly Timer[], target: number): Timer | undefined {
  let first: Timer | undefined
  for (const timer of timers) if (timer.at <= target && (first === undefined || timer.at < first.at)) first = timer
  return first
}
