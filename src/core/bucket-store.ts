import type { Step } from './algorithm.js'
import type { FluxGateError } from './errors.js'
import type { OverrideBook } from './overrides/override-book.js'
import type { Band, OnStoreFailure, Policy } from './rule.js'

/** The buckets of one rule: where they live and how they count. Built once per rule, shared by all its decisions. */
export interface BucketGroup {
  readonly ruleSetId: string
  readonly ruleId: string
  /** Changes when the rule's buckets must start afresh. */
  readonly generation: string
  /** What one request costs; a bucket with less than this is refusing. */
  readonly permits: number
  readonly bands: readonly Band[]
  /** A process may pay for permits in advance and spend them by itself, if the store can do that. */
  readonly isLeased?: boolean
  /** Identities may have overrides, which the store looks up, if it keeps any. */
  readonly hasOverrides?: boolean
  /** Identities are addresses, of which a range may have an override. */
  readonly countsAddresses?: boolean
  /** Of an identity with an override: the group whose place this one takes. */
  readonly insteadOf?: BucketGroup
  /** There is no bucket: the identity is not limited, or refused, whatever it asks for. */
  readonly listed?: 'ALLOW' | 'DENY'
  /** The rule's own policy while the store fails. */
  readonly onStoreFailure?: OnStoreFailure | undefined
  /** Where a store may note what it has found out about this group, if it is asked for again and again. */
  readonly memo?: GroupMemo
}

/** The same rule with other bands. What is known of a group is known of its bands, so none of it is taken along. */
export const withBands = (group: BucketGroup, bands: readonly Band[]): BucketGroup => ({
  ...group,
  bands,
  memo: newMemo(),
})

/** One note, and whose it is: a group may be asked of several stores. */
export interface GroupMemo {
  owner: unknown
  note: unknown
}

export const newMemo = (): GroupMemo => ({ owner: undefined, note: undefined })

/** What all demands of a rule have in common. */
export interface Claim {
  readonly group: BucketGroup
  /** Ticks the caller would wait for a refill; 0 to be refused instead. */
  readonly patience: number
  /** How the rule treats the excess; for the decision to report. */
  readonly policy: Policy
  /** Counted when its own bands allow, but never in the way. */
  readonly shadow: boolean
}

/** Whether nobody is asked to wait under it, and no override can change it, or has. */
export const isPlain = ({ group, patience }: Claim): boolean =>
  patience === 0 && !group.hasOverrides && group.insteadOf === undefined

/** One rule's claim within a decision. */
export interface Demand extends Claim {
  /** Whom it counts against. */
  readonly key: string
  /** Of each band; 0 only in a peek, to see buckets as they stand. */
  readonly permits: number
}

/** Spelt out: objects made by spreading are slow to read afterwards. */
export function demandOf({ group, patience, policy, shadow }: Claim, key: string, permits: number): Demand {
  return { group, key, permits, patience, policy, shadow }
}

/** How many bands a decision is about. */
export function bandCount(demands: readonly Pick<Demand, 'group'>[]): number {
  let count = 0
  for (let i = 0; i < demands.length; i++) count += (demands[i] as Demand).group.bands.length
  return count
}

/** What one band said, after the decision: charged if all was granted, as it was if not. */
export type BandResult = Readonly<Pick<Step, 'allowed' | 'delay' | 'retryAfter' | 'remaining' | 'resetAt'>>

export interface ChargeResult {
  /** Every band of every demand that is not a shadow grants, so all of them are charged. */
  readonly granted: boolean
  /** The store's time, in ticks. */
  readonly now: number
  /** Per demand, the time of the node that decided, where nodes with clocks of their own took part. */
  readonly decidedAt?: readonly number[]
  /** One per band of the first demand, then of the second, and so on; there may be unused ones behind them. */
  readonly bands: readonly BandResult[]
  /** What was decided about instead of the demands, if an identity has an override: as many, in their order. */
  readonly applied?: readonly Demand[]
  /** True if this was known here already, and therefore says nothing about whether the store can be reached. */
  readonly isUnasked?: boolean
}

/** A result that outlives the next decision of a store that reuses its own. */
export function copyResult(demands: readonly Demand[], { granted, now, bands, applied }: ChargeResult): ChargeResult {
  const count = bandCount(applied ?? demands)
  const copies = bands.slice(0, count).map(({ allowed, delay, retryAfter, remaining, resetAt }) => ({
    allowed,
    delay,
    retryAfter,
    remaining,
    resetAt,
  }))
  return applied === undefined ? { granted, now, bands: copies } : { granted, now, bands: copies, applied }
}

/** Permits to take back from every band of a rule. */
export interface Refund {
  readonly group: BucketGroup
  readonly key: string
  readonly permits: number
  /** Per band, the tick its permits were granted for: the decision's time plus that band's delay. Left out: now. */
  readonly grantedAt?: readonly number[] | undefined
}

/** Permits to be taken in advance: as many as there are, no more than wanted and no fewer than needed. */
export interface LeaseRequest {
  readonly group: BucketGroup
  readonly key: string
  /** Needed. */
  readonly permits: number
  readonly wanted: number
}

/** What the bands said; and if they granted, how many permits are held now, to be spent before which tick of the store. */
export interface LeaseResult extends ChargeResult {
  readonly lease?: { readonly permits: number; readonly ending: number }
}

/** Permits of leases that end at the tick `ending`, and that are held no longer. */
export interface Settlement {
  readonly group: BucketGroup
  readonly key: string
  /** Spent; or, below 0, not spent, and given back. Once the lease has ended there is nothing to give back. */
  readonly permits: number
  readonly ending: number
}

/**
 * A store that hands out permits in advance. What is held counts against the capacity until it is settled or its lease has
 * ended, so that no interval sees more than it would without leases.
 */
export interface LeasingStore extends BucketStore {
  lease(request: LeaseRequest): Promise<LeaseResult>
  settle(settlements: readonly Settlement[]): Promise<void>
}

/** How often the buckets of each rule were started afresh, counted where all processes see it. */
export interface SharedResets {
  /** Whether the counts are known yet; until then nobody can say which buckets are in force. */
  readonly isKnown: boolean
  of(ruleSetId: string, ruleId: string): number
  startAfresh(ruleSetId: string, ruleIds: readonly string[]): Promise<void>
  /** Reads the counts now and then, and says when one has changed; the result stops it. */
  watch(onChange: () => void): () => void
}

/**
 * Where buckets live. An implementation keeps three promises: a decision is atomic over all bands of all its demands;
 * a refusal writes nothing; time is the store's own. `bucketStoreContract` in fluxgate-js/testing checks them.
 */
export interface BucketStore {
  /** Charges every demand, or none of them; `peek` charges nothing but answers as if it would. */
  charge(demands: readonly Demand[], peek: boolean): Promise<ChargeResult>
  /** Present only if the store can answer at once. The result is valid until the next call. */
  chargeSync?(demands: readonly Demand[], peek: boolean): ChargeResult
  refund(refunds: readonly Refund[]): Promise<void>
  /** Forgets one identity of a rule. */
  reset(group: BucketGroup, key: string): Promise<void>
  /** Told that the rule is gone or has started afresh, so that this group will not be asked for again. Optional. */
  retire?(group: BucketGroup): void
  /** Present if overrides can be kept beside the buckets. */
  readonly overrides?: OverrideBook | undefined
  /** Present if other processes share the buckets, and therefore whole rules are reset together with them. */
  readonly resets?: SharedResets
  /** Buckets are spread over several servers, so that calls about some may fail while those about others succeed. */
  readonly failsInParts?: boolean
  /** Answers or fails within a deadline of its own, so that nobody needs to set one. */
  readonly isBounded?: boolean
  /** False while there is no connection to the store. */
  readonly isConnected?: boolean
  /** The error that a call would reject with at once, because there is no connection. */
  readonly unreachable?: FluxGateError | undefined
  /** Of the circuit breaker before it, if there is one. */
  readonly breaker?: 'CLOSED' | 'OPEN' | 'HALF_OPEN'
  /** Permits paid for in advance that this process may still spend, where the store leases. */
  readonly heldPermits?: number
  /**
   * Resolves once the store can be asked, or after `withinMs` (default: the store's own) all the same. Rejects if only a
   * change of configuration can help.
   */
  ready?(withinMs?: number): Promise<void>
  /**
   * Resolves if the store can decide now, and rejects with the reason if it cannot. Changes no bucket of a rule. Optional:
   * without it, the state of the store is known from decisions alone.
   */
  probe?(): Promise<void>
  close(): Promise<void>
}
