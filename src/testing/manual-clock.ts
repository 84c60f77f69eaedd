import { type Clock, ticksUp } from '../core/clock.js'

export interface ManualClock extends Clock {
  now(): number
  /** Moves time on, waking sleepers in the order of their time; fractions down to a microsecond. Negative steps back. */
  advance(ms: number): void
  schedule(ms: number, wake: () => void): () => void
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** A clock that stands still until it is told otherwise. */
export function manualClock(startMs = 0): ManualClock {
  let nowTicks = Math.round(startMs * 1000)
  let sleepers: Sleeper[] = []
  return {
    now: () => nowTicks / 1000,
    advance(ms) {
      const target = nowTicks + Math.round(ms * 1000)
      for (let next = earliest(sleepers, target); next !== undefined; next = earliest(sleepers, target)) {
        sleepers = sleepers.filter((sleeper) => sleeper !== next)
        nowTicks = Math.max(nowTicks, next.at)
        next.wake()
      }
      nowTicks = target
    },
    schedule(ms, wake) {
      const sleeper = { at: nowTicks + ticksUp(ms), wake }
      sleepers.push(sleeper)
      return () => {
        sleepers = sleepers.filter((other) => other !== sleeper)
      }
    },
  }
}

/** The first to wake no later than `target`; of several at one instant, the one that went to sleep first. */
function earliest(sleepers: readonly Sleeper[], target: number): Sleeper | undefined {
  let first: Sleeper | undefined
  for (const sleeper of sleepers)
    if (sleeper.at <= target && (first === undefined || sleeper.at < first.at)) first = sleeper
  return first
}
