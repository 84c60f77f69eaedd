import { algorithmTraits } from '../core/algorithm-traits.js'
import { type BucketGroup, type BucketStore, type Charge, withBands } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { type DecideOptions, RateLimiter, type StoreFailureFallback } from '../core/decision/rate-limiter.js'
import type { Decision } from '../core/decision.js'
import type { Hold, HoldStorage } from '../core/holds/hold-storage.js'
import type { ReservationRequest, ReservationStorage, SettleOutcome } from '../core/reservations/reservation-storage.js'
import { decisionOf, type ReservationFallback } from '../core/reservations/reserving-limiter.js'
import { type Band, type Costs, maxWindowTicks, type OnStoreFailure } from '../core/rule.js'
import type { WaitingRoom } from '../core/waiting/waiting-room.js'
import { failureDecision, withCause } from './failure-decision.js'

export interface StoreFailurePolicyOptions {
  /** The failing store. Its cached overrides still apply. */
  readonly store: Pick<BucketStore, 'overrides'>
  /** The local buckets. Must have `chargeSync`. */
  readonly localStore: BucketStore
  readonly room: WaitingRoom
  readonly clock: Clock
  /** Applies to rules without a policy of their own; default `LOCAL`. */
  readonly onStoreFailure?: OnStoreFailure
  /** The share of each limit that this process enforces alone; 1 is all of it. */
  readonly localShare: number
}

/** Decides requests while the store fails, by the `onStoreFailure` of their rules. */
export class StoreFailurePolicy implements StoreFailureFallback, ReservationFallback {
  readonly #options: StoreFailurePolicyOptions
  readonly #local: RateLimiter
  readonly #shares = new WeakMap<BucketGroup, BucketGroup>()
  /** Holds that were taken in this process while the store failed. */
  readonly holds: HoldStorage = {
    release: (holds) => this.#localHolds().release(holds.map((hold) => this.#inThisProcess(hold))),
    renew: (holds) => this.#localHolds().renew(holds.map((hold) => this.#inThisProcess(hold))),
  }

  constructor(options: StoreFailurePolicyOptions) {
    this.#options = options
    this.#local = new RateLimiter(reportingOverrides(options.localStore), options.room, { degraded: true })
  }

  /** A rule with DENY rejects the request. Otherwise rules with LOCAL are enforced in this process, and rules with ALLOW are skipped. */
  decide(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions, error: unknown): Decision {
    return withCause(this.#decide(ruleSetId, charges, options), error)
  }

  #decide(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions): Decision {
    const rejection = this.#rejectionOf(ruleSetId, charges)
    if (rejection !== undefined) return rejection
    const local = charges.filter((charge) => this.#policyOf(charge) === 'LOCAL')
    if (local.length === 0) return failureDecision(true, this.#options.clock.now(), { ruleSetId })
    const localCharges = local.map((charge) => this.#localCharge(charge))
    if (options.variant === undefined) return this.#local.decide(ruleSetId, localCharges, options) as Decision
    // Variants are charges of a single rule.
    return this.#local.decideVariant(ruleSetId, localCharges[0] as Charge, options.variant, options) as Decision
  }

  /** Like `decide`. A reservation that is allowed is settled in this process. */
  async reserve(request: ReservationRequest, error?: unknown): Promise<Decision> {
    return withCause(await this.#reserve(request), error)
  }

  async #reserve(request: ReservationRequest): Promise<Decision> {
    const { ruleSetId, charges, costs } = request
    const rejection = this.#rejectionOf(ruleSetId, charges)
    if (rejection !== undefined) return rejection
    const isLocal = charges.map((charge) => this.#policyOf(charge) === 'LOCAL')
    const outcome = await this.#localReservations().reserve({
      ...request,
      reason: 'STORE_FAILURE',
      charges: charges.filter((_, i) => isLocal[i]).map((charge) => this.#localCharge(charge)),
      costs: costs.filter((_, i) => isLocal[i]),
    })
    if (outcome !== 'FULL') return decisionOf(outcome, true)
    return failureDecision(false, this.#options.clock.now(), { ruleSetId })
  }

  has(id: string): boolean {
    return this.#localReservations().has?.(id) ?? false
  }

  async settle(id: string, amounts: Costs | undefined): Promise<SettleOutcome | undefined> {
    if (!this.has(id)) return undefined
    return this.#localReservations().settle({ id, amounts, currentGroup: (group) => group })
  }

  #policyOf({ group }: Charge): OnStoreFailure {
    return group.onStoreFailure ?? this.#options.onStoreFailure ?? 'LOCAL'
  }

  /** The rejection by a rule with DENY. */
  #rejectionOf(ruleSetId: string | null, charges: readonly Charge[]): Decision | undefined {
    const denying = charges.find((charge) => !charge.shadow && this.#policyOf(charge) === 'DENY')
    if (denying === undefined) return undefined
    return failureDecision(false, this.#options.clock.now(), { ruleSetId, ruleId: denying.group.ruleId })
  }

  #localCharge(charge: Charge): Charge {
    return { ...charge, group: this.#shareOf(this.#groupOf(charge)) }
  }

  #localReservations(): ReservationStorage {
    return this.#options.localStore.reservations as ReservationStorage
  }

  #localHolds(): HoldStorage {
    return this.#options.localStore.holds as HoldStorage
  }

  #inThisProcess(hold: Hold): Hold {
    return { ...hold, group: this.#shareOf(this.#groupOf(hold)) }
  }

  /** The group of the key's override if the store has cached it, else the group of the rule. */
  #groupOf({ group, key }: Pick<Charge, 'group' | 'key'>): BucketGroup {
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

/** Reports charges whose group is that of an override in `applied`. */
function reportingOverrides(store: BucketStore): BucketStore {
  const { chargeSync } = store
  return {
    charge: (charges, peek) => store.charge(charges, peek),
    ...(chargeSync && {
      chargeSync(charges: readonly Charge[], peek: boolean) {
        const result = chargeSync.call(store, charges, peek)
        return charges.some(({ group }) => group.insteadOf !== undefined) ? { ...result, applied: charges } : result
      },
    }),
    holds: store.holds,
    variants: store.variants,
    reservations: store.reservations,
    refund: (refunds) => store.refund(refunds),
    reset: (group, key) => store.reset(group, key),
    close: () => store.close(),
  }
}

/** Scales a band, rounded down. If less than one token would be refilled per window, the window is extended instead. */
function scaledBand({ spent, ...band }: Band, share: number): Band {
  const capacity = band.capacity === 0 ? 0 : Math.max(1, Math.floor(band.capacity * share))
  const refillTokens = band.refillTokens * share
  const scaledBalance = spent && { spent: { ...spent, permits: Math.min(capacity, Math.ceil(spent.permits * share)) } }
  if (refillTokens >= 1) return { ...band, ...scaledBalance, capacity, refillTokens: Math.floor(refillTokens) }
  const { isRefilled } = algorithmTraits[band.algorithm]
  const windowTicks = isRefilled
    ? Math.min(maxWindowTicks, Math.ceil(band.windowTicks / refillTokens))
    : band.windowTicks
  return { ...band, ...scaledBalance, capacity, refillTokens: 1, windowTicks }
}
