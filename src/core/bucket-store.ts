import type { Step } from './algorithm.js'
import { haveFixedWindows } from './algorithm-traits.js'
import type { Ban } from './bans/ban.js'
import type { BanStorage } from './bans/ban-storage.js'
import type { FluxGateError } from './errors.js'
import type { HoldId, HoldStorage } from './holds/hold-storage.js'
import type { OverrideStorage } from './overrides/override-storage.js'
import type { ReservationStorage } from './reservations/reservation-storage.js'
import type { Band, OnStoreFailure, Policy } from './rule.js'
import type { BreakerState } from './scheduling/circuit-breaker.js'

/** The buckets of one rule: their identity in the store and their bands. Created once per rule and shared by all its decisions. */
export interface BucketGroup {
  /** The id of the rule set. */
  readonly ruleSetId: string
  /** The id of the rule. */
  readonly ruleId: string
  /** Changes when the buckets of the rule are reset: a new generation starts with new buckets. */
  readonly generation: string
  /** The cost of one request. A bucket with fewer permits rejects. */
  readonly permits: number
  /** The bands of the rule. Each key has one bucket per band. */
  readonly bands: readonly Band[]
  /** Set if `bands` are those of a single call: the group of the rule, which uses the same buckets. */
  readonly rule?: BucketGroup
  /**
   * Set if the buckets keep their used fraction when the bands change: the bands of the rule. `bands` may differ from them for a
   * single call.
   */
  readonly definitions?: readonly Band[] | undefined
  /** True if a process may lease permits and spend them locally. Stores without leasing ignore this. */
  readonly isLeased?: boolean
  /** True if keys may have overrides. A store that keeps overrides then looks them up. */
  readonly hasOverrides?: boolean
  /** True if keys are IP addresses, so that an override may cover an address range. */
  readonly countsAddresses?: boolean
  /** Bans keys after repeated rejections by the rule. A store counts the rejections in the call that decides. */
  readonly ban?: Ban | undefined
  /** In the group of a key with an override: the group of the rule, which this group replaces. */
  readonly insteadOf?: BucketGroup
  /** Set if an override allows or denies every request of the key, without a bucket. */
  readonly listed?: 'ALLOW' | 'DENY'
  /** The rule's own policy while the store fails. */
  readonly onStoreFailure?: OnStoreFailure | undefined
  /** True if a band uses the algorithm CONCURRENCY: a granted charge occupies slots until its hold is released. */
  readonly takesHolds?: boolean
  /** True if the windows of all bands have a fixed length: no band has a calendar or takes holds. */
  readonly hasFixedWindows?: boolean
  /** Holds values that a store has computed for this group. Set if many decisions reuse the group. */
  readonly memo?: GroupMemo
}

/** Returns the group with the bands of a single call. Cached values depend on the bands, so they are not copied. */
export const withBands = (group: BucketGroup, bands: readonly Band[]): BucketGroup => ({
  ...group,
  bands,
  hasFixedWindows: haveFixedWindows(bands),
  rule: group.rule ?? group,
  memo: newMemo(),
})

/** A cached value and the store that owns it, because several stores may see the same group. */
export interface GroupMemo {
  owner: unknown
  note: unknown
}

export const newMemo = (): GroupMemo => ({ owner: undefined, note: undefined })

/** The part of a charge that is the same for every request of a rule. */
export interface RuleCharge {
  readonly group: BucketGroup
  /** The longest wait for a refill, in ticks. 0 rejects the request instead. */
  readonly maxWaitTicks: number
  /** How the rule treats requests over the limit. Only reported in the decision. */
  readonly policy: Policy
  /** True in SHADOW mode: charged if its own bands grant, and never rejects the request. */
  readonly shadow: boolean
}

/** The charge of one rule within a decision. */
export interface Charge extends RuleCharge {
  /** The key that is limited, such as an IP address. */
  readonly key: string
  /** Permits to take from each band. 0 only in a peek, to read the current state. */
  readonly permits: number
  /** Identifies the hold that a granted charge takes. Set if the group takes holds and the charge is not a peek. */
  readonly hold?: HoldId | undefined
  /**
   * True if the request waits for a hold to be released. A shared store then admits requests of all processes in order of arrival,
   * as long as each asks again with the same `hold` at least once per second. A store of one process ignores this.
   */
  readonly isQueued?: boolean
}

/** Lists all members, because V8 reads objects that were created by spreading slowly. */
export function chargeOf({ group, maxWaitTicks, policy, shadow }: RuleCharge, key: string, permits: number): Charge {
  return { group, key, permits, maxWaitTicks, policy, shadow }
}

/** The number of bands of all charges of a decision. */
export function bandCount(charges: readonly Pick<Charge, 'group'>[]): number {
  let count = 0
  for (let i = 0; i < charges.length; i++) count += (charges[i] as Charge).group.bands.length
  return count
}

/** The result of one band: its state after the charge if the decision was granted, otherwise its unchanged state. Times are in ticks. */
export type BandResult = Readonly<Pick<Step, 'allowed' | 'delay' | 'retryAfter' | 'remaining' | 'resetAt'>> & {
  /** True if the key is banned. `retryAfter` is then at least the rest of the ban. */
  readonly banned?: boolean
}

/** The outcome of `BucketStore.charge`. */
export interface ChargeResult {
  /** True if all bands of all charges grant, shadow rules excepted. All of them are then charged. */
  readonly granted: boolean
  /** The store's time, in ticks. */
  readonly now: number
  /** Per charge, the time of the node that decided it. Set if several nodes with their own clocks were involved. */
  readonly decidedAt?: readonly number[]
  /** The results of all bands of the first charge, then of the second, and so on. Unused entries may follow. */
  readonly bands: readonly BandResult[]
  /** Set if a key has an override: the charges that were decided instead, in the same number and order. */
  readonly applied?: readonly Charge[]
  /** True if the result comes from a local cache. The store may be unavailable. */
  readonly fromCache?: boolean
  /** Set by `ChargeVariants` for PARTIAL: the permits that were taken, or would be taken first. */
  readonly taken?: number
}

/** Copies a result, because a store may reuse the original for its next decision. */
export function copyResult(charges: readonly Charge[], { granted, now, bands, applied }: ChargeResult): ChargeResult {
  const count = bandCount(applied ?? charges)
  const copies = bands.slice(0, count).map(({ allowed, delay, retryAfter, remaining, resetAt, banned }) => ({
    allowed,
    delay,
    retryAfter,
    remaining,
    resetAt,
    ...(banned && { banned }),
  }))
  return applied === undefined ? { granted, now, bands: copies } : { granted, now, bands: copies, applied }
}

/**
 * How a charge differs from a plain one. `FORCE` takes the permits in any case: buckets without enough permits go into debt, by
 * at most their capacity. `PARTIAL` takes as many multiples of the rule's `permits` as all bands allow now, at least one.
 */
export type ChargeVariant = 'FORCE' | 'PARTIAL'

/** Charges of one key that are forced or partial. */
export interface ChargeVariants {
  charge(charge: Charge, variant: ChargeVariant): Promise<ChargeResult>
  /** Like `charge`, for stores that can decide synchronously. The result is valid until the next call. */
  chargeSync?(charge: Charge, variant: ChargeVariant): ChargeResult
}

/** Permits to return to every band of a rule. */
export interface Refund {
  /** The buckets of the rule that was charged. */
  readonly group: BucketGroup
  /** The key that was charged. */
  readonly key: string
  /** Permits to return to each band. */
  readonly permits: number
  /** The hold of the charge, which is released. Without it, bands with the algorithm CONCURRENCY are not refunded. */
  readonly hold?: HoldId | undefined
  /** Per band, the tick for which its permits were granted: the time of the decision plus the delay of the band. Default: now. */
  readonly grantedAt?: readonly number[] | undefined
}

/** A request for leased permits. The store grants as many as are available, from `permits` up to `wanted`. */
export interface LeaseRequest {
  readonly group: BucketGroup
  readonly key: string
  /** The minimum; with fewer, the request is denied. */
  readonly permits: number
  /** The maximum. */
  readonly wanted: number
}

/** The results of the bands and, if granted, the leased permits, which must be spent before the store's tick `ending`. */
export interface LeaseResult extends ChargeResult {
  readonly lease?: { readonly permits: number; readonly ending: number }
}

/** Permits to remove from the leases that end at the tick `ending`. */
export interface Settlement {
  readonly group: BucketGroup
  readonly key: string
  /** Positive: permits that were spent. Negative: unused permits to return, which has no effect after the lease has ended. */
  readonly permits: number
  readonly ending: number
}

/**
 * Leases permits to processes. Leased permits count against the capacity until they are settled or their lease ends, so
 * that leasing never allows more requests in any interval.
 */
export interface Leasing {
  lease(request: LeaseRequest): Promise<LeaseResult>
  settle(settlements: readonly Settlement[]): Promise<void>
}

/** The generation of each rule: the number of times that its buckets were reset, shared by all processes. */
export interface SharedGenerations {
  /** False until the generations have been loaded. Until then, it is unknown which buckets are current. Never becomes false again. */
  readonly isKnown: boolean
  /** The current generation of a rule. */
  of(ruleSetId: string, ruleId: string): number
  /** Increments the generation of these rules, which resets all their buckets. */
  resetRules(ruleSetId: string, ruleIds: readonly string[]): Promise<void>
  /** Polls the generations and calls `onChange` after a change. Returns a function that stops polling. */
  watch(onChange: () => void): () => void
}

/** @deprecated Use `SharedGenerations`. */
export type SharedResets = SharedGenerations

/** The connection state of a remote store. A store in this process does not need it. */
export interface StoreAvailability {
  /** True if every call succeeds or fails within the store's own timeout. Otherwise FluxGate applies `resilient`. */
  readonly isBounded?: boolean | undefined
  /** True if the buckets are spread over several servers, so that some calls can fail while others succeed. */
  readonly failsPartially?: boolean | undefined
  /** False while the store is disconnected. */
  readonly isConnected?: boolean | undefined
  /** Set while the store is disconnected: the error with which calls reject immediately. */
  readonly unreachable?: FluxGateError | undefined
  /** The state of the circuit breaker in front of the store, if there is one. */
  readonly breaker?: BreakerState | undefined
  /** The leased permits that this process can still spend, even while the store is unavailable. */
  readonly heldPermits?: number | undefined
  /**
   * Resolves once the store is connected, or after `withinMs` (default: the store's own timeout) even if it is not. Rejects
   * if only a change of configuration can help.
   */
  ready?(withinMs?: number): Promise<void>
  /**
   * Resolves if the store can decide now; otherwise rejects with the reason. Changes no bucket. Without it, the health of
   * the store is derived from decisions only.
   */
  probe?(): Promise<void>
}

/** Rejections that are certain without a call to the store. They are available while the store is not. */
export interface RejectionCache {
  /** Returns the rejection that the store would return now, or undefined if it must be called. Called before every charge and peek. */
  find(charges: readonly Charge[], peek: boolean): ChargeResult | undefined
}

/**
 * Stores buckets and decides about them. An implementation guarantees that a decision is atomic over all bands of all its
 * charges, that a rejection writes nothing, and that time is the store's own. Run `bucketStoreContract` of fluxgate-js/testing
 * to verify an implementation. Optional abilities are objects, so that `decorateStore` forwards each of them as a whole.
 */
export interface BucketStore {
  /** Applies all charges or none of them. With `peek`, returns the result of the decision without charging. */
  charge(charges: readonly Charge[], peek: boolean): Promise<ChargeResult>
  /**
   * Like `charge`, for stores that can decide synchronously. The result is valid until the next call. The charges are valid
   * until this call returns, because the caller may reuse them.
   */
  chargeSync?(charges: readonly Charge[], peek: boolean): ChargeResult
  /**
   * Like `chargeSync` without peek, at the time of the previous decision, so that two decisions about one request see the same
   * time. Optional.
   */
  chargeAgain?(charges: readonly Charge[]): ChargeResult
  /**
   * Decides a charge that needs no call to a remote store, or returns undefined; `charge` then decides. The result is valid until
   * the next call. Optional.
   */
  chargeLocally?(charges: readonly Charge[]): ChargeResult | undefined
  /** Returns permits to their buckets. */
  refund(refunds: readonly Refund[]): Promise<void>
  /** Deletes the bucket of one key of a rule. */
  reset(group: BucketGroup, key: string): Promise<void>
  /** Called when the rule was removed or reset: this group will not be used again. Optional. */
  retire?(group: BucketGroup): void
  /** Releases connections and other resources. */
  close(): Promise<void>
  /** Set if the store can keep overrides next to the buckets. */
  readonly overrides?: OverrideStorage | undefined
  /** Set if several processes share the buckets and must agree on the generation of each rule. */
  readonly generations?: SharedGenerations | undefined
  /** Set if the store is remote and can report its state. */
  readonly availability?: StoreAvailability | undefined
  /** Set if the store can lease permits. */
  readonly leasing?: Leasing | undefined
  /** Set if the store supports the algorithm CONCURRENCY. */
  readonly holds?: HoldStorage | undefined
  /** Set if the store supports `ban` of groups, and can list, set and lift bans. */
  readonly bans?: BanStorage | undefined
  /** Set if the store supports forced and partial charges. */
  readonly variants?: ChargeVariants | undefined
  /** Set if the store keeps reservations. */
  readonly reservations?: ReservationStorage | undefined
  /** Set if the store caches rejections in this process. */
  readonly rejectionCache?: RejectionCache | undefined
  /** @deprecated Use `generations`. */
  readonly resets?: SharedGenerations | undefined
  /** @deprecated Use `availability.isBounded`. */
  readonly isBounded?: boolean | undefined
  /** @deprecated Use `availability.ready`. */
  ready?(withinMs?: number): Promise<void>
  /** @deprecated Use `availability.probe`. */
  probe?(): Promise<void>
}

export interface LeasingStore extends BucketStore {
  readonly leasing: Leasing
}
