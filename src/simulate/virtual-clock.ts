import { type Clock, ticksPerMs } from '../core/clock.js'

export interface VirtualClock extends Clock {
  /** Advances to this tick and fires due timers in order. Never goes back. */
  moveTo(tick: number): void
  /** The tick of the next timer; undefined without timers. */
  readonly nextAt: number | undefined
}

interface Timer {
  readonly at: number
  readonly wake: () => void
}

/** A clock that advances only by `moveTo`, so that a day of recorded traffic is simulated without waiting. */
export function virtualClock(): VirtualClock {
  let now = 0
  // Sorted by time. Most delays are similar, so a new timer usually belongs at the end.
  let timers: Timer[] = []
  return {
    now: () => now / ticksPerMs,
    get nextAt() {
      return timers[0]?.at
    },
    moveTo(tick) {
      while (timers[0] !== undefined && timers[0].at <= tick) {
        const { at, wake } = timers.shift() as Timer
        now = Math.max(now, at)
        wake()
      }
      now = Math.max(now, tick)
    },
    schedule(ms, wake) {
      const timer = { at: now + Math.ceil(ms * ticksPerMs), wake }
      let index = timers.length
      while (index > 0 && (timers[index - 1] as Timer).at > timer.at) index -= 1
      timers.splice(index, 0, timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
  }
}
