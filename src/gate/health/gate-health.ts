import type { StoreAvailability } from '../../core/bucket-store.js'
import { messageOf } from '../../core/errors.js'
import type { LoadedRulesStatus } from '../../rules/loaded-rules.js'
import type { StoreState } from './store-state.js'

/** Health of a gate. Times are epoch milliseconds. */
export interface GateHealth {
  /**
   * DEGRADED: the gate decides, but the store is unavailable, the rules are older than those of the rule store, or bucket
   * resets are pending. DOWN: the gate is closed and rejects every check.
   */
  readonly status: 'UP' | 'DEGRADED' | 'DOWN'
  /** The bucket store. */
  readonly store: {
    /** Result of a probe that is at most one second old, or of the latest decisions if the store has no probe. */
    readonly status: 'UP' | 'DOWN'
    /** Since when the store has this status. */
    readonly sinceAt: number
    /** Why the store is unavailable, or that resets are pending; otherwise null. */
    readonly error: string | null
    /** State of the circuit breaker; CLOSED for a store without a breaker. */
    readonly breaker: 'CLOSED' | 'OPEN' | 'HALF_OPEN'
    /** Leased permits that this process has not spent yet. */
    readonly heldPermits: number
    /** Rules that were removed during an outage and whose buckets will be reset once the store recovers. */
    readonly pendingResets: number
  }
  /** The current rules, and how they are reloaded. */
  readonly rules: Omit<LoadedRulesStatus, 'failure'> & {
    /** STALE: the last reload failed, and older rules are in effect. */
    readonly status: 'UP' | 'STALE'
    /** The name of the reload strategy. */
    readonly reload: string
    /** Why the last reload failed; null if it did not. */
    readonly error: string | null
    /** Since when reloads fail; null if they do not. */
    readonly sinceAt: number | null
  }
  /** The number of delayed requests. */
  readonly waiting: number
}

const breakerOpen =
  'The bucket store is reachable, but the circuit breaker is open: the failure policy applies until its next attempt.'

const resetsPending = (rules: number): string =>
  `The buckets of ${rules} removed ${rules === 1 ? 'rule' : 'rules'} could not be reset yet. The reset will be retried.`

/** The state of the parts of a gate. */
export interface HealthParts {
  readonly availability: StoreAvailability | undefined
  readonly state: Pick<StoreState, 'isDown' | 'sinceAt' | 'error'>
  readonly pendingResets: number
  readonly rules: LoadedRulesStatus
  readonly reload: string
  readonly waiting: number
  readonly isClosed: boolean
}

export function healthOf({
  availability,
  state,
  pendingResets,
  rules,
  reload,
  waiting,
  isClosed,
}: HealthParts): GateHealth {
  const { failure, ...status } = rules
  const { isDown, sinceAt, error } = state
  const problem = isDown
    ? messageOf(error)
    : availability?.breaker === 'OPEN'
      ? breakerOpen
      : pendingResets > 0
        ? resetsPending(pendingResets)
        : null
  return {
    status: isClosed ? 'DOWN' : problem !== null || failure !== null ? 'DEGRADED' : 'UP',
    store: {
      status: isDown ? 'DOWN' : 'UP',
      sinceAt,
      error: problem,
      breaker: availability?.breaker ?? 'CLOSED',
      heldPermits: availability?.heldPermits ?? 0,
      pendingResets,
    },
    rules: {
      ...status,
      status: failure === null ? 'UP' : 'STALE',
      reload,
      error: failure?.error.message ?? null,
      sinceAt: failure?.sinceAt ?? null,
    },
    waiting,
  }
}
