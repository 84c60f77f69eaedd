import type { BucketStore } from '../../core/bucket-store.js'
import { messageOf } from '../../core/errors.js'
import type { RuleBookStatus } from '../../rules/rule-book.js'
import type { StoreState } from './store-state.js'

export interface GateHealth {
  /**
   * DEGRADED: the gate decides, but without the store, by older rules than the rule store holds, or with bucket resets still
   * to be made. DOWN: the gate is closed and rejects every check.
   */
  readonly status: 'UP' | 'DEGRADED' | 'DOWN'
  readonly store: {
    /** From a probe that is at most a second old, where the store has one; otherwise from the latest decisions. */
    readonly status: 'UP' | 'DOWN'
    readonly sinceAt: number
    readonly error: string | null
    /** Of the circuit breaker; CLOSED where there is none. */
    readonly breaker: 'CLOSED' | 'OPEN' | 'HALF_OPEN'
    /** Permits paid for in advance that this process may still spend. */
    readonly heldPermits: number
    /** Rules that were removed here while the store failed, whose buckets will start afresh once it answers. */
    readonly owedResets: number
  }
  readonly rules: Omit<RuleBookStatus, 'failure'> & {
    readonly status: 'UP' | 'STALE'
    readonly reload: string
    readonly error: string | null
    readonly sinceAt: number | null
  }
  readonly waiting: number
}

const breakerOpen =
  'The bucket store answers, but the circuit breaker is open: decisions are made without it until the next attempt.'

const stillOwed = (rules: number): string =>
  `The buckets of ${rules} removed ${rules === 1 ? 'rule' : 'rules'} could not be reset yet; it is tried again.`

/** What the parts of a gate say of themselves. */
export interface HealthParts {
  readonly store: Pick<BucketStore, 'breaker' | 'heldPermits'>
  readonly state: Pick<StoreState, 'isDown' | 'sinceAt' | 'error'>
  readonly owedResets: number
  readonly rules: RuleBookStatus
  readonly reload: string
  readonly waiting: number
  readonly isClosed: boolean
}

export function healthOf({ store, state, owedResets, rules, reload, waiting, isClosed }: HealthParts): GateHealth {
  const { failure, ...book } = rules
  const { isDown, sinceAt, error } = state
  const problem = isDown
    ? messageOf(error)
    : store.breaker === 'OPEN'
      ? breakerOpen
      : owedResets > 0
        ? stillOwed(owedResets)
        : null
  return {
    status: isClosed ? 'DOWN' : problem !== null || failure !== null ? 'DEGRADED' : 'UP',
    store: {
      status: isDown ? 'DOWN' : 'UP',
      sinceAt,
      error: problem,
      breaker: store.breaker ?? 'CLOSED',
      heldPermits: store.heldPermits ?? 0,
      owedResets,
    },
    rules: {
      ...book,
      status: failure === null ? 'UP' : 'STALE',
      reload,
      error: failure?.error.message ?? null,
      sinceAt: failure?.sinceAt ?? null,
    },
    waiting,
  }
}
