import type { Page, PageQuery } from './rule-store.js'

/** A key that a rule rejects until the ban ends. */
export interface ActiveBan {
  /** The rate limit key. */
  readonly key: string
  /** ISO 8601 time at which the ban ends. */
  readonly until: string
  /** The rest of the ban in milliseconds, by the clock of the store. */
  readonly retryAfterMs: number
  /** The number of bans since the escalation started; 0 for a ban that was set by hand, without earlier ones. */
  readonly count: number
}

/** The length of a ban that is set by hand. Default: `for` of the rule's `ban`. */
export interface BanInput {
  /** A duration such as `15m`, or a number of seconds; at most `max` of the rule's `ban`. */
  readonly for?: string | number | undefined
  /** ISO 8601 time, or epoch milliseconds, in place of `for`. */
  readonly until?: string | number | undefined
}

/** Selects a page of bans. Default: the first 50. */
export interface BanQuery extends Partial<PageQuery> {
  /** Lists only keys with this prefix. */
  readonly prefix?: string | undefined
}

/**
 * The bans of rules with `ban`. A change takes effect for the next decision of a process that has not cached a rejection of the
 * key, and within a second for all others.
 */
export interface BanStore {
  /** Lists the active bans of a rule, sorted by key. */
  list(ruleSetId: string, ruleId: string, query?: BanQuery): Promise<Page<ActiveBan>>
  /** Resolves to undefined if the key is not banned. */
  get(ruleSetId: string, ruleId: string, key: string): Promise<ActiveBan | undefined>
  /**
   * Bans a key by hand, or replaces its ban. The ban does not count towards the escalation. Rejects with FLUXGATE_BAN_INVALID,
   * whose `errors` list every validation issue.
   *
   * @example
   * await gate.bans?.set('api', 'login', '203.0.113.7', { for: '1h' })
   */
  set(
    ruleSetId: string,
    ruleId: string,
    key: string,
    input?: BanInput,
  ): Promise<{ readonly ban: ActiveBan; readonly created: boolean }>
  /** Ends a ban and clears the escalation of the key. Resolves to false if the key is not banned. */
  lift(ruleSetId: string, ruleId: string, key: string): Promise<boolean>
}
