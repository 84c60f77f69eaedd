import { type Clock, ticksPerMs } from '../core/clock.js'

export interface VirtualClock extends Clock {
  /** Goes on to this tick, waking on the way whoever sleeps until then, in order. Never goes back. */
  moveTo(tick: number): void
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** Time that passes when it is told to: what takes a day in a recording takes a moment here. */
export function virtualClock(): VirtualClock {
  let now = 0
  // In the order of waking. Delays are nearly alike, so newcomers usually belong at the end.
  let sleepers: Sleeper[] = []
  return {
    now: () => now / ticksPerMs,
    moveTo(tick) {
      while (sleepers[0] !== undefined && sleepers[0].at <= tick) {
        const { at, wake } = sleepers.shift() as Sleeper
        now = Math.max(now, at)
        wake()
      }
      now = Math.max(now, tick)
    },
    schedule(ms, wake) {
      const sleeper = { at: now + Math.ceil(ms * ticksPerMs), wake }
      let place = sleepers.length
      while (place > 0 && (sleepers[place - 1] as Sleeper).at > sleeper.at) place -= 1
      sleepers.splice(place, 0, sleeper)
      return () => {
        sleepers = sleepers.filter((other) => other !== sleeper)
      }
    },
  }
}
