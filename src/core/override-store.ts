import type { Page, PageQuery } from './rule-store.js'

/** An exception to one rule for one identity: other bands, no limit, or nothing at all. */
export interface Override {
  /** The identity as the rule counts it; for a rule of scope IP also a range such as `10.0.0.0/8`. */
  readonly key: string
  readonly action: 'LIMIT' | 'ALLOW' | 'DENY'
  /** LIMIT: what takes the place of the rule's bands, as a rule document spells them; may be left out with a balance. */
  readonly bands?: readonly Readonly<Record<string, unknown>>[]
  /** ISO 8601; from then on the rule applies as it is. */
  readonly expiresAt?: string
  readonly note?: string
  /** LIMIT: how many permits were left in each band at `balanceAt`, instead of all that it can hold. */
  readonly balance?: number
  /** ISO 8601; left out, when the override is written. */
  readonly balanceAt?: string
}

/** By default the first fifty. */
export interface OverrideQuery extends Partial<PageQuery> {
  /** Only keys that begin with this. */
  readonly prefix?: string | undefined
}

/**
 * The exceptions to rules that say `overrides: true`. They live with the buckets, because a decision looks them up in its own
 * round trip; what is put here is in force for the next decision.
 */
export interface OverrideStore {
  list(ruleSetId: string, ruleId: string, query?: OverrideQuery): Promise<Page<Override>>
  get(ruleSetId: string, ruleId: string, key: string): Promise<Override | undefined>
  /** Rejects with FLUXGATE_OVERRIDE_INVALID, which lists each mistake. */
  put(ruleSetId: string, ruleId: string, override: unknown): Promise<{ readonly created: boolean }>
  /** Whether there was one. */
  delete(ruleSetId: string, ruleId: string, key: string): Promise<boolean>
}
