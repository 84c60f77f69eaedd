import type { BucketGroup } from '../bucket-store.js'
import type { EntryQuery } from '../overrides/override-storage.js'
import { utf8Length } from '../runtime/utf8.js'

/** An active ban. Times are in ticks of the store's clock. */
export interface KeyBan {
  /** The rate limit key. */
  readonly key: string
  readonly until: number
  /** The number of bans since the escalation started; 0 if this one was set by hand and is the first. */
  readonly count: number
  /** The time at which the ban was read. */
  readonly now: number
}

/** The end of a ban that is set by hand: its length, or a point in time. */
export type BanEnd = { readonly forTicks: number } | { readonly until: number }

export interface BanPage {
  /** Sorted by the UTF-8 bytes of their keys. */
  readonly bans: readonly KeyBan[]
  /** The start of the next page; undefined on the last page. */
  readonly next: string | undefined
}

/** A ban that a decision of this process has started. */
export interface StartedBan {
  readonly group: BucketGroup
  readonly key: string
  readonly until: number
}

/**
 * The bans that a bucket store keeps next to its buckets. The group has a `ban`. Processes that reject from a cache notice a
 * lifted ban within a second.
 */
export interface BanStorage {
  get(group: BucketGroup, key: string): Promise<KeyBan | undefined>
  /** Lists the bans of a rule. May return fewer than `limit`, and still a next page. Costs as much as a page, whatever the number of bans. */
  list(group: BucketGroup, query: EntryQuery): Promise<BanPage>
  /**
   * Bans a key, from now on and instead of a ban that it has. Does not change the escalation. Returns undefined if the end is not
   * in the future, or later than the longest ban of the rule.
   */
  set(
    group: BucketGroup,
    key: string,
    end: BanEnd,
  ): Promise<{ readonly ban: KeyBan; readonly created: boolean } | undefined>
  /** Ends a ban and clears the escalation of the key. Resolves to false if there is no ban. */
  lift(group: BucketGroup, key: string): Promise<boolean>
  /** Calls the listener for every ban that a decision of this process starts. Returns a function that removes it. */
  onStart(listener: (ban: StartedBan) => void): () => void
}

const maxListedBytes = 1_024

/** False for keys that are too long to be listed, and for lone surrogates, which have no UTF-8 encoding. */
export const isListed = (key: string): boolean =>
  key.length <= maxListedBytes && utf8Length(key) <= maxListedBytes && !/\p{Surrogate}/u.test(key)

/** Notifies listeners of bans. */
export class BanListeners {
  readonly #listeners = new Set<(ban: StartedBan) => void>()

  add(listener: (ban: StartedBan) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  started(ban: StartedBan): void {
    for (const listener of this.#listeners) listener(ban)
  }
}
