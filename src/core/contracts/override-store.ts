import type { Page, PageQuery } from './rule-store.js'

/** Changes one rule for one key: other bands (`LIMIT`), no limit (`ALLOW`), or no access (`DENY`). */
export interface Override {
  /** The rate limit key. For a rule with the scope IP, also an address range such as `10.0.0.0/8`. */
  readonly key: string
  /** LIMIT: other bands. ALLOW: no limit. DENY: every request is rejected. */
  readonly action: 'LIMIT' | 'ALLOW' | 'DENY'
  /** LIMIT: the bands that replace those of the rule, in the format of a rule document. Optional if `balance` is set. */
  readonly bands?: readonly Readonly<Record<string, unknown>>[]
  /** ISO 8601 time at which the override expires. Default: never. */
  readonly expiresAt?: string
  /** A remark for other editors. It has no effect. */
  readonly note?: string
  /** LIMIT: the permits that were left in each band at `balanceAt`. Default: the capacity. */
  readonly balance?: number
  /** ISO 8601 time of `balance`. Default: the time at which the override is written. */
  readonly balanceAt?: string
}

/** Selects a page of overrides. Default: the first 50. */
export interface OverrideQuery extends Partial<PageQuery> {
  /** Lists only keys with this prefix. */
  readonly prefix?: string | undefined
}

/**
 * Edits the overrides of rules with `overrides: true`. They are stored next to the buckets, because a decision looks them up
 * in its own round trip. A change takes effect for the next decision.
 */
export interface OverrideStore {
  /** Lists the overrides of a rule, sorted by key. */
  list(ruleSetId: string, ruleId: string, query?: OverrideQuery): Promise<Page<Override>>
  /** Resolves to undefined if the key has no override. */
  get(ruleSetId: string, ruleId: string, key: string): Promise<Override | undefined>
  /** Creates or replaces an override. Rejects with FLUXGATE_OVERRIDE_INVALID, whose `errors` list every validation issue. */
  put(ruleSetId: string, ruleId: string, override: unknown): Promise<{ readonly created: boolean }>
  /** Resolves to false if there was no such override. */
  delete(ruleSetId: string, ruleId: string, key: string): Promise<boolean>
}
