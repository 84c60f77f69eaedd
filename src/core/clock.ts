import { FluxGateError } from './errors.js'

/**
 * A source of time. Clocks return fractional milliseconds. The engine converts them to whole microseconds ("ticks"), so that
 * all durations and timestamps are exact integers far below 2⁵³.
 *
 * @example
 * const clock: Clock = { now: () => Date.now() }
 */
export interface Clock {
  /** Milliseconds since the epoch, exact to the microsecond. */
  now(): number
  /** Calls `wake` after `ms` have passed on this clock. Returns a function that cancels. Default: `setTimeout`. */
  schedule?(ms: number, wake: () => void): () => void
}

export const ticksPerMs = 1000

// Captured, because fake timers of tests replace the global. Importing `node:process` would make Node open all standard streams.
const { performance } = globalThis

const epochTicks = (): number => Math.round((performance.timeOrigin + performance.now()) * ticksPerMs)

/** Replaces `process.hrtime` in edge runtimes. Cloudflare Workers have no time while modules are loaded, and a time origin of 0. */
function epochTime(): [seconds: number, nanoseconds: number] {
  const now = epochTicks()
  const seconds = Math.floor(now / 1_000_000)
  return [seconds, (now - seconds * 1_000_000) * 1000]
}

const hrtime = (performance.timeOrigin > 0 && globalThis.process?.hrtime) || epochTime

const [startSeconds, startNanoseconds] = hrtime()
/** The epoch tick at which `hrtime` was 0. */
const originTicks =
  hrtime === epochTime ? 0 : epochTicks() - startSeconds * 1_000_000 - ((startNanoseconds / 1000) >>> 0)

/** The default clock. It reads the wall clock once at process start and is monotonic from then on. */
export const systemClock: Clock = { now: () => ticks(systemClock) / ticksPerMs }

/** The current tick. `hrtime` is faster than `performance.now`, which checks its receiver. */
export function ticks(clock: Clock): number {
  if (clock !== systemClock) return Math.round(clock.now() * ticksPerMs)
  const time = hrtime()
  return originTicks + time[0] * 1_000_000 + ((time[1] / 1000) >>> 0)
}

/** True if the value has a `now` method. `Date` qualifies; the function `Date.now` does not. */
export const isClock = (clock: unknown): clock is Clock =>
  (typeof clock === 'object' || typeof clock === 'function') &&
  clock !== null &&
  'now' in clock &&
  typeof clock.now === 'function'

/** Returns the clock, or throws FLUXGATE_ARGUMENT_INVALID if it has no `now` method. */
export function checkClock(clock: Clock): Clock {
  if (isClock(clock)) return clock
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `clock must be an object with a now() method that returns epoch milliseconds; received ${clock === null ? 'null' : typeof clock}.`,
  )
}

/** Converts milliseconds to whole ticks, rounded up. A floating-point error does not round up to another tick. */
export function ticksUp(ms: number): number {
  const exact = ms * ticksPerMs
  const nearest = Math.round(exact)
  return Math.abs(exact - nearest) < 0.001 ? nearest : Math.ceil(exact)
}

/** The longest delay of `setTimeout`, 24.8 days. A longer one fires at once. */
export const maxTimerMs = 2 ** 31 - 1

/** Uses `schedule` of the clock, or else `setTimeout`, repeatedly for waits longer than `maxTimerMs`. */
export function schedule(clock: Clock, ms: number, wake: () => void): () => void {
  if (clock.schedule) return clock.schedule(ms, wake)
  const slice = Math.min(ms, maxTimerMs)
  let cancel = (): void => clearTimeout(timer)
  const timer = setTimeout(() => {
    if (ms > slice) cancel = schedule(clock, ms - slice, wake)
    else wake()
  }, Math.ceil(slice))
  return () => cancel()
}
