import type { Charge } from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import type { DecideOptions } from '../../core/decision/rate-limiter.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import type { Departure } from '../../core/waiting/waiting-room.js'
import { ruleSetId } from './rule-buckets.js'

/** The part of a limiter that is needed to decide. */
interface Decider {
  decide(ruleSetId: string, charges: readonly Charge[], options?: DecideOptions): Decision | Promise<Decision>
}

/** A decision, and the end of its delay. */
export interface EnteredDecision {
  readonly decision: Decision
  /** Resolves to the tick at which a delayed request is released; undefined if the request is not delayed. */
  readonly left: Promise<number> | undefined
}

/** Decides, and keeps a delayed request in the waiting room. `left` rejects if `signal` aborts or the limiter is closed. */
export async function decideAndEnter(
  limiter: Decider,
  clock: Clock,
  charge: Charge,
  signal?: AbortSignal,
): Promise<EnteredDecision> {
  let left: Promise<number> | undefined
  let leave: ((how: Departure) => void) | undefined
  const decision = await limiter.decide(ruleSetId, [charge], {
    signal,
    onLeave: (how) => leave?.(how),
    onEnter: () => {
      left = new Promise((resolve, reject) => {
        leave = (how) => {
          if (how === 'ABORTED') reject(signal?.reason)
          else if (how === 'CLOSED') reject(closedWhileWaiting())
          // The time of release, not the later time at which the caller's promise resolves.
          else resolve(ticks(clock))
        }
      })
      left.catch(() => {})
    },
  })
  return { decision, left }
}

const closedWhileWaiting = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'The limiter was closed while this call was waiting.')
