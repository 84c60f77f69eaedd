import type { BucketGroup, Charge, LeaseRequest, Refund, Settlement } from '../../core/bucket-store.js'

/** What the script can be asked to do, all or nothing. */
export type Work =
  | { readonly what: 'CHARGE' | 'PEEK'; readonly claims: readonly Charge[] }
  | { readonly what: 'REFUND'; readonly claims: readonly Refund[] }
  | { readonly what: 'LEASE'; readonly claims: readonly [LeaseRequest] }
  | { readonly what: 'SETTLE'; readonly claims: readonly Settlement[] }
  | { readonly what: 'RESET'; readonly claims: readonly Pick<Refund, 'group' | 'key'>[] }
  | { readonly what: 'BACKDATE'; readonly claims: readonly Backdate[] }

/**
 * A bucket that the store has moved along after its clock stepped back, as if no time had passed since it was written. This
 * process has measured that some had, so the bucket is dated to when it was written, as the store's clock now counts.
 */
export interface Backdate {
  readonly group: BucketGroup
  readonly key: string
  /** The instant that bands count from. One that counts from another was written since, and stays as it is. */
  readonly from: number
  /** Per band, the instant that it counts from then; below 0 to leave it. */
  readonly instants: readonly number[]
}

/** Where buckets and overrides are. */
export interface Names {
  keyOf(group: BucketGroup, key: string, band: number): string
  /** Where to look for the override of an identity. */
  overrideOf(group: BucketGroup, key: string): OverridePlace
}

/** The last edit of an override: where it is told, and the one that is known; `''` if there was none. */
export interface LastEdit {
  readonly key: string
  readonly known: string
}

export interface OverridePlace {
  /** The hash that would hold it. */
  readonly hash: string
  /** Of a range of addresses that holds the identity; applies if it has none of its own. */
  readonly otherwise: Buffer
}

/** The claim of a work that may have an override. */
export interface Lookup {
  readonly work: Work
  readonly claim: number
  readonly otherwise: Buffer
}
