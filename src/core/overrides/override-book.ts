import type { BucketGroup } from '../bucket-store.js'
import { inUtf8Order } from '../keys/utf8-order.js'
import type { Override } from '../override-store.js'
import type { Band } from '../rule.js'

/** An override as the engine sees it: read, filled in, readonly. */
export interface OverrideTerms {
  readonly action: Override['action']
  /** LIMIT: what takes the place of the rule's bands; empty if they stay, which is only so with a balance. */
  readonly bands: readonly Band[]
  /** Epoch milliseconds from which on the rule applies as it is. */
  readonly expiresAtMs: number | undefined
  readonly note: string | undefined
  /** LIMIT: what its buckets begin with instead of being full. */
  readonly balance?: StartingBalance
}

/** So many permits were left in each band at this instant, or all that it can hold; since then it has been refilling. */
export interface StartingBalance {
  readonly permits: number
  /** Epoch milliseconds. */
  readonly atMs: number
}

export interface OverrideEntry {
  readonly key: string
  readonly terms: OverrideTerms
}

export interface EntryQuery {
  readonly prefix: string
  /** `next` of the page before; '' for the first one. */
  readonly after: string
  readonly limit: number
}

export interface EntryPage {
  /** In the order of their keys as UTF-8. */
  readonly entries: readonly OverrideEntry[]
  /** Where to go on; undefined after the last page. */
  readonly next: string | undefined
}

/** Whose override it is: of an identity, or of all in a range of addresses that have none of their own. */
export interface OverrideName {
  readonly ruleSetId: string
  readonly ruleId: string
  /** The identity as the rule counts it; of a range its one spelling, such as `10.0.0.0/8`. */
  readonly key: string
  readonly isRange: boolean
}

/**
 * The overrides that a bucket store keeps beside its buckets, and looks up in the call that decides. Of several ranges
 * that hold an address the smallest counts. What has expired is not there any more.
 */
export interface OverrideBook {
  get(name: OverrideName): Promise<OverrideTerms | undefined>
  /** Whether there was none before. In force for the next decision. */
  put(name: OverrideName, terms: OverrideTerms): Promise<boolean>
  /** Whether there was one. */
  delete(name: OverrideName): Promise<boolean>
  /**
   * Optional: the group that counts this identity by an override which this process has come across, for while the store cannot
   * be asked.
   */
  seen?(group: BucketGroup, key: string): BucketGroup | undefined
  /** Identities and ranges, each on one page, however many there are; which page that is is up to the store. */
  list(ruleSetId: string, ruleId: string, query: EntryQuery): Promise<EntryPage>
}

export const isOver = ({ expiresAtMs }: OverrideTerms, nowMs: number): boolean =>
  expiresAtMs !== undefined && expiresAtMs <= nowMs

export const byKey = (one: OverrideEntry, other: OverrideEntry): number => inUtf8Order(one.key, other.key)
