import { algorithmTraits } from '../core/algorithm-traits.js'
import { type BucketGroup, type BucketStore, type Charge, withBands } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { type DecideOptions, RateLimiter, type StoreFailureFallback } from '../core/decision/rate-limiter.js'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { Decision } from '../core/decision.js'
import { type Band, maxWindowTicks, type OnStoreFailure } from '../core/rule.js'
import type { WaitingRoom } from '../core/waiting/waiting-room.js'

export interface StoreFailurePolicyOptions {
  /** The one that fails; which overrides it had is remembered. */
  readonly store: Pick<BucketStore, 'overrides'>
  /** Limits in this process; it has `chargeSync`. */
  readonly localStore: BucketStore
  readonly room: WaitingRoom
  readonly clock: Clock
  /** Applies to rules without a policy of their own; default `LOCAL`. */
  readonly onStoreFailure?: OnStoreFailure
  /** The part of each limit that one process takes over: 1 for all of it. */
  readonly localShare: number
}

/** How soon to come back when the store is down and the rule refuses without it. */
const retryAfterFailureMs = 1_000

/** The one place where it is decided what becomes of a request while the store fails. */
export class StoreFailurePolicy implements StoreFailureFallback {
  readonly #options: StoreFailurePolicyOptions
  readonly #local: RateLimiter
  readonly #shares = new WeakMap<BucketGroup, BucketGroup>()

  constructor(options: StoreFailurePolicyOptions) {
    this.#options = options
    this.#local = new RateLimiter(tellingOverrides(options.localStore), options.room, { degraded: true })
  }

  /** Each rule says what to do; one that refuses decides for all, and what remains is limited in this process. */
  decide(ruleSetId: string | null, demands: readonly Charge[], options: DecideOptions): Decision {
    const { onStoreFailure = 'LOCAL' } = this.#options
    const policyOf = ({ group }: Charge): OnStoreFailure => group.onStoreFailure ?? onStoreFailure
    const details = { ruleSetId, degraded: true }
    const now = this.#options.clock.now()
    const refusing = demands.find((demand) => !demand.shadow && policyOf(demand) === 'DENY')
    if (refusing !== undefined)
      return unmeteredDecision(false, 'STORE_FAILURE', now, {
        ...details,
        ruleId: refusing.group.ruleId,
        retryAfterMs: retryAfterFailureMs,
      })
    const local = demands.filter((demand) => policyOf(demand) === 'LOCAL')
    if (local.length === 0) return unmeteredDecision(true, 'STORE_FAILURE', now, details)
    const claims = local.map((demand) => ({ ...demand, group: this.#shareOf(this.#groupOf(demand)) }))
    return this.#local.decide(ruleSetId, claims, options) as Decision
  }

  /** Of an identity whose override has been seen, that one. */
  #groupOf({ group, key }: Charge): BucketGroup {
    return (group.hasOverrides && this.#options.store.overrides?.cached?.(group, key)) || group
  }

  #shareOf(group: BucketGroup): BucketGroup {
    const share = this.#options.localShare
    if (share === 1 || group.listed !== undefined) return group
    let scaled = this.#shares.get(group)
    if (scaled === undefined) {
      scaled = withBands(
        group,
        group.bands.map((band) => scaledBand(band, share)),
      )
      this.#shares.set(group, scaled)
    }
    return scaled
  }
}

/** Demands that count otherwise than their rule says are told as such. */
function tellingOverrides(store: BucketStore): BucketStore {
  const { chargeSync } = store
  return {
    charge: (demands, peek) => store.charge(demands, peek),
    ...(chargeSync && {
      chargeSync(demands: readonly Charge[], peek: boolean) {
        const result = chargeSync.call(store, demands, peek)
        return demands.some(({ group }) => group.insteadOf !== undefined) ? { ...result, applied: demands } : result
      },
    }),
    refund: (refunds) => store.refund(refunds),
    reset: (group, key) => store.reset(group, key),
    close: () => store.close(),
  }
}

/** A part of a limit, rounded down; where less than one token would come per window, one comes per longer window. */
function scaledBand({ spent, ...band }: Band, share: number): Band {
  const capacity = Math.max(1, Math.floor(band.capacity * share))
  const refillTokens = band.refillTokens * share
  const begun = spent && { spent: { ...spent, permits: Math.min(capacity, Math.ceil(spent.permits * share)) } }
  if (refillTokens >= 1) return { ...band, ...begun, capacity, refillTokens: Math.floor(refillTokens) }
  const { isRefilled } = algorithmTraits[band.algorithm]
  const windowTicks = isRefilled
    ? Math.min(maxWindowTicks, Math.ceil(band.windowTicks / refillTokens))
    : band.windowTicks
  return { ...band, ...begun, capacity, refillTokens: 1, windowTicks }
}
