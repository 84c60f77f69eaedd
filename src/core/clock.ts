import { performance } from 'node:perf_hooks'
import { FluxGateError } from './errors.js'

/**
 * Time as an argument. Clocks speak milliseconds with a fraction; the engine counts whole microseconds ("ticks"),
 * so that every duration and instant is an exact integer far below 2⁵³.
 */
export interface Clock {
  /** Milliseconds since the epoch, exact to the microsecond. */
  now(): number
  /** Calls back once `ms` have passed on this clock; the result cancels. Without it, real timers are used. */
  schedule?(ms: number, wake: () => void): () => void
}

export const ticksPerMs = 1000

// Not imported: that would have Node open all streams of the process, and take as much memory as all algorithms.
const { hrtime } = process

/** Counts from an instant of its own. Costs less than `performance.now`, which checks what it is called on. */
function hrticks(): number {
  const time = hrtime()
  return time[0] * 1_000_000 + ((time[1] / 1000) >>> 0)
}

const originTicks = Math.round((performance.timeOrigin + performance.now()) * ticksPerMs) - hrticks()

/** Monotonic: follows the wall clock at process start and never steps back after it. */
export const systemClock: Clock = { now: () => (originTicks + hrticks()) / ticksPerMs }

/** Whether this can tell the time, as far as can be seen: `Date` can, and `Date.now` by itself cannot. */
export const isClock = (clock: unknown): clock is Clock =>
  (typeof clock === 'object' || typeof clock === 'function') &&
  clock !== null &&
  'now' in clock &&
  typeof clock.now === 'function'

/** A clock that a caller gave in code, if it is one. */
export function checkClock(clock: Clock): Clock {
  if (isClock(clock)) return clock
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `clock must be an object with now(), which gives epoch milliseconds, found ${clock === null ? 'null' : typeof clock}.`,
  )
}

export const ticks = (clock: Clock): number =>
  clock === systemClock ? originTicks + hrticks() : Math.round(clock.now() * ticksPerMs)

/** Milliseconds as whole ticks, rounded up; what is a whole tick but for floating noise stays what it is. */
export function ticksUp(ms: number): number {
  const exact = ms * ticksPerMs
  const nearest = Math.round(exact)
  return Math.abs(exact - nearest) < 0.001 ? nearest : Math.ceil(exact)
}

const longestTimerMs = 2 ** 31 - 1

/** `schedule` of the clock, or real timers, also for waits beyond the 24.8 days that one timer can take. */
export function schedule(clock: Clock, ms: number, wake: () => void): () => void {
  if (clock.schedule) return clock.schedule(ms, wake)
  let timer: NodeJS.Timeout
  const arm = (left: number): void => {
    const slice = Math.min(left, longestTimerMs)
    timer = setTimeout(() => (left > slice ? arm(left - slice) : wake()), Math.ceil(slice))
  }
  arm(ms)
  return () => clearTimeout(timer)
}
