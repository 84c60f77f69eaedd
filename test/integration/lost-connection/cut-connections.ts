/** Callers that decide without a pause, so each has exactly one call in flight when a connection is lost. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Decision } from '../../../src/core/decision.js'
import { eventually } from '../../fixtures/eventually.js'

/** The default deadline of a call. */
export const timeoutMs = 100
/** Node.js fires timers up to a millisecond early. */
export const timerErrorMs = 1

export interface Callers {
  readonly count: number
  made(): number
  /** Allowed by the shared store. */
  allowed(): number
  degraded(): number
  /**
   * Number of degraded decisions per caller that ended before their deadline. Decisions that waited for a new
   * connection until their deadline do not count: how long a server takes to accept one depends on the machine.
   */
  lost(): readonly number[]
  /** Resolves when every caller has made this many more decisions, started from now on. */
  madeEach(decisions: number): Promise<void>
  /** Resolves when all callers together have made this many more decisions. */
  madeTogether(decisions: number): Promise<void>
  stop(): Promise<void>
}

export function startCallers(ask: () => Promise<Decision>, count = 20): Callers {
  const callers = Array.from({ length: count }, () => ({ made: 0, allowed: 0, degraded: 0, lost: 0 }))
  const sum = (name: 'made' | 'allowed' | 'degraded'): number =>
    callers.reduce((total, caller) => total + caller[name], 0)
  let isOver = false

  async function callForever(caller: (typeof callers)[number]): Promise<void> {
    while (!isOver) {
      const begunAt = performance.now()
      const { allowed, degraded } = await ask()
      caller.made++
      if (!degraded) {
        if (allowed) caller.allowed++
        continue
      }
      caller.degraded++
      if (performance.now() - begunAt < timeoutMs - timerErrorMs) caller.lost++
      // A degraded decision needs no I/O, so without this turn the loop would never reach any.
      await turn()
    }
  }

  const calling = Promise.all(callers.map(callForever))
  return {
    count,
    made: () => sum('made'),
    allowed: () => sum('allowed'),
    degraded: () => sum('degraded'),
    lost: () => callers.map(({ lost }) => lost),
    async madeEach(decisions) {
      // One more, because the decision in flight started earlier.
      const goals = callers.map(({ made }) => made + decisions + 1)
      await eventually(
        'every caller makes progress',
        () => callers.every(({ made }, i) => made >= (goals[i] ?? 0)),
        60_000,
      )
    },
    async madeTogether(decisions) {
      const goal = sum('made') + decisions
      await eventually('the callers make progress', () => sum('made') >= goal, 60_000)
    },
    async stop() {
      isOver = true
      await calling
    },
  }
}
