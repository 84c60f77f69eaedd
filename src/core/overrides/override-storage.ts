import type { BucketGroup } from '../bucket-store.js'
import type { Override } from '../contracts/override-store.js'
import { inUtf8Order } from '../keys/utf8-order.js'
import type { Band } from '../rule.js'

/** A parsed override with all defaults applied. */
export interface OverrideTerms {
  readonly action: Override['action']
  /** LIMIT: the bands that replace those of the rule. Empty if the bands stay, which requires a `balance`. */
  readonly bands: readonly Band[]
  /** Epoch milliseconds after which the rule applies unchanged. */
  readonly expiresAtMs: number | undefined
  readonly note: string | undefined
  /** LIMIT: the starting balance of the buckets. Default: full. */
  readonly balance?: StartingBalance
}

/** The permits that were left in each band at a given time, at most its capacity. The bucket refills from that time on. */
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
  /** `next` of the previous page, or '' for the first page. */
  readonly after: string
  readonly limit: number
}

export interface EntryPage {
  /** Sorted by the UTF-8 bytes of their keys. */
  readonly entries: readonly OverrideEntry[]
  /** The start of the next page; undefined on the last page. */
  readonly next: string | undefined
}

/** Identifies an override: of one key, or of an address range. A range applies to addresses without an override of their own. */
export interface OverrideId {
  readonly ruleSetId: string
  readonly ruleId: string
  /** The rate limit key, or the canonical notation of a range, such as `10.0.0.0/8`. */
  readonly key: string
  readonly isRange: boolean
}

/**
 * The overrides that a bucket store keeps next to its buckets and looks up in the same call as the decision. If several ranges
 * contain an address, the smallest one applies. Expired overrides are treated as missing.
 */
export interface OverrideStorage {
  get(name: OverrideId): Promise<OverrideTerms | undefined>
  /** Takes effect for the next decision. Resolves to true if the override is new. */
  put(name: OverrideId, terms: OverrideTerms): Promise<boolean>
  /** Resolves to false if there was no such override. */
  delete(name: OverrideId): Promise<boolean>
  /** Optional: the group of an overridden key, from a local cache. Used while the store is unavailable. */
  cached?(group: BucketGroup, key: string): BucketGroup | undefined
  /** Lists keys and ranges. Each occurs on exactly one page; the order of pages is up to the store. */
  list(ruleSetId: string, ruleId: string, query: EntryQuery): Promise<EntryPage>
}

export const hasExpired = ({ expiresAtMs }: OverrideTerms, nowMs: number): boolean =>
  expiresAtMs !== undefined && expiresAtMs <= nowMs

export const byKey = (one: OverrideEntry, other: OverrideEntry): number => inUtf8Order(one.key, other.key)
