import type { BucketStore } from '../core/bucket-store.js'
import { messageOf } from '../core/errors.js'
import type { RuleBookStatus } from '../rules/rule-book.js'
import type { StoreState } from './store-state.js'

export interface GateHealth {
  /** DEGRADED: decisions are made, but without the store, on older rules than were offered, or with resets still to be made. */
  readonly status: 'UP' | 'DEGRADED'
  readonly store: {
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
}

export function healthOf({ store, state, owedResets, rules, reload, waiting }: HealthParts): GateHealth {
  const { failure, ...book } = rules
  const { isDown, sinceAt, error } = state
  return {
    status: isDown || owedResets > 0 || failure !== null ? 'DEGRADED' : 'UP',
    store: {
      status: isDown ? 'DOWN' : 'UP',
      sinceAt,
      error: isDown ? messageOf(error) : owedResets > 0 ? stillOwed(owedResets) : null,
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
