import type { Decision } from '../../src/core/decision.js'

/** What became of everything that was asked. */
export interface Tally {
  asked: number
  answered: number
  /** Decisions that ended in an error. There should be none: a refusal and a degraded decision are answers. */
  readonly errors: unknown[]
  /** Admitted by the shared store. */
  admitted: number
  /** Decided without it. */
  degraded: number
  /** How many in a row, up to now, the shared store has decided. */
  exactInARow: number
  /** The longest that a decision took, in time in which the event loop could run: see `loopTimer`. */
  slowestMs: number
}

export interface Load {
  readonly tally: Tally
  /** Asks no more; resolves when everything is answered. */
  stop(): Promise<Tally>
}

export interface LoadOptions {
  /** How many ask at the same time. */
  readonly callers?: number
  /** How long each waits between an answer and its next question. */
  readonly pauseMs?: number
}

/** Asks again and again, until told to stop. `ask` is given the number of the caller. */
export function startLoad(
  ask: (caller: number) => Promise<Decision>,
  { callers = 16, pauseMs = 2 }: LoadOptions = {},
): Load {
  const tally: Tally = {
    asked: 0,
    answered: 0,
    errors: [],
    admitted: 0,
    degraded: 0,
    exactInARow: 0,
    slowestMs: 0,
  }
  const timer = loopTimer()
  let isOver = false
  async function askOnce(caller: number): Promise<void> {
    tally.asked++
    const askedAt = timer.nowMs()
    try {
      note(tally, await ask(caller))
    } catch (error) {
      tally.errors.push(error)
    }
    tally.slowestMs = Math.max(tally.slowestMs, timer.nowMs() - askedAt)
  }
  const ended = Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      while (!isOver) {
        await askOnce(caller)
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    }),
  )
  return {
    tally,
    async stop() {
      isOver = true
      await ended
      timer.stop()
      return tally
    },
  }
}

const turnMs = 10

/**
 * Time in which the event loop could run, counted in turns of a short timer. While the process is stalled or starved it
 * stands still, as the deadlines of calls do.
 */
function loopTimer() {
  let turns = 0
  const interval = setInterval(() => turns++, turnMs)
  return { nowMs: () => turns * turnMs, stop: () => clearInterval(interval) }
}

function note(tally: Tally, { allowed, degraded }: Decision): void {
  tally.answered++
  if (degraded) tally.degraded++
  else if (allowed) tally.admitted++
  tally.exactInARow = degraded ? 0 : tally.exactInARow + 1
}

/** Takes every permit that is left, in large steps and then in smaller ones; resolves with how many that were. */
export async function drain(ask: (permits: number) => Promise<Decision>): Promise<number> {
  let taken = 0
  for (let permits = 64; permits >= 1; ) {
    const { allowed, degraded } = await ask(permits)
    if (degraded) throw new Error('the shared store is not there')
    if (allowed) taken += permits
    else permits /= 8
  }
  return taken
}
