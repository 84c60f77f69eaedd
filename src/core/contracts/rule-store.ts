/** Storage for editable rules: a file, Redis or MongoDB. `ruleStoreContract` in `fluxgate-js/testing` verifies an implementation. */
import type { RuleSetProvider } from './rule-set-provider.js'

/** A rule as its author wrote it, with the members that the store adds: `createdAt`, `updatedAt`, `version`. */
export type RuleDocument = Readonly<Record<string, unknown>> & {
  /** Unique within the rule set. */
  readonly id: string
}

/** The properties of a rule set other than its rules. */
export interface RuleSetHead {
  /** The id of the rule set. */
  readonly id: string
  /** A description for people. It has no effect. */
  readonly description?: string
  /** Apply all matching rules, or only the first. Default: `all`. */
  readonly strategy?: 'all' | 'first'
  /** Makes path matching case-sensitive. Default: false. */
  readonly caseSensitive?: boolean
  /** For a candidate: the id of the rule set alongside which it is evaluated, without effect. */
  readonly candidateOf?: string
}

/** A rule set with its rules, as a rule store returns it. */
export interface RuleSetDocument extends RuleSetHead {
  /** Increases with every change of the set or of one of its rules. */
  readonly version: number
  /** Sorted by descending priority, ties by id. */
  readonly rules: readonly RuleDocument[]
}

/** The author of an edit and the version that the edit is based on. */
export interface Edit {
  /** The author, for the history. Never a secret. */
  readonly by: string
  /**
   * The version that the edit is based on, or 0 if the document must not exist yet. If the current version differs, the edit
   * rejects with FLUXGATE_RULES_CONFLICT and changes nothing. Default: any version.
   */
  readonly ifVersion?: number | undefined
}

/** One page of a list. */
export interface Page<T> {
  /** The entries of this page. */
  readonly items: readonly T[]
  /** The cursor of the next page, opaque and safe in a URL; `null` on the last page. */
  readonly cursor: string | null
}

/** Selects a page of a list. */
export interface PageQuery {
  /** The maximum number of entries. */
  readonly limit: number
  /** `cursor` of the previous page. Default: the first page. */
  readonly cursor?: string | undefined
}

/** Selects a page of rules. */
export interface RuleQuery extends PageQuery {
  /** Text that the id, name, description or path must contain. Ignores case. */
  readonly q?: string | undefined
  /** Lists only enabled or only disabled rules. Default: both. */
  readonly enabled?: boolean | undefined
}

/** One change of a rule or rule set. A history lists the newest change first. */
export interface HistoryEntry {
  /** ISO 8601 time of the change. */
  readonly at: string
  /** The author, from `Edit.by`. */
  readonly by: string
  /** The kind of change. */
  readonly action: 'PUT_SET' | 'DELETE_SET' | 'PUT_RULE' | 'DELETE_RULE'
  /** The id of the rule set. */
  readonly ruleSetId: string
  /** The id of the rule; `null` for a change of the whole set. */
  readonly ruleId: string | null
  /** The version of the changed document after the change. */
  readonly version: number
  /** The document before the change; `null` if it was created. */
  readonly before: unknown
  /** The document after the change; `null` if it was deleted. */
  readonly after: unknown
}

/**
 * A provider whose rules can be edited. Every change is atomic and recorded in the history. It is validated first
 * (FLUXGATE_RULES_INVALID lists all issues, and nothing is written), and announced to other processes if the store supports that.
 * `attributes` are preserved byte for byte through every edit (see `parseJson` and `jsonText`).
 */
export interface RuleStore extends RuleSetProvider {
  /** Lists rule sets with their rules, sorted by id. */
  listRuleSets(query: PageQuery): Promise<Page<RuleSetDocument>>
  /** Resolves to undefined if there is no such set. */
  getRuleSet(id: string): Promise<RuleSetDocument | undefined>
  /** Creates or replaces a set with all its rules. Rules that stay the same keep their version. */
  putRuleSet(document: unknown, edit: Edit): Promise<{ readonly document: RuleSetDocument; readonly created: boolean }>
  /** Resolves to false if there was no such set. */
  deleteRuleSet(id: string, edit: Edit): Promise<boolean>
  /** Rejects with FLUXGATE_RULE_SET_UNKNOWN if there is no such set. */
  listRules(ruleSetId: string, query: RuleQuery): Promise<Page<RuleDocument>>
  /** Resolves to undefined if there is no such rule. */
  getRule(ruleSetId: string, ruleId: string): Promise<RuleDocument | undefined>
  /** Creates or replaces one rule of an existing set. */
  putRule(
    ruleSetId: string,
    document: unknown,
    edit: Edit,
  ): Promise<{ readonly document: RuleDocument; readonly created: boolean }>
  /** Resolves to false if there was no such rule. */
  deleteRule(ruleSetId: string, ruleId: string, edit: Edit): Promise<boolean>
  /** Lists the changes of a rule set and of its rules, newest first. */
  history(ruleSetId: string, query: PageQuery): Promise<Page<HistoryEntry>>
  /**
   * Optional: runs `work` under a lock that all processes share. `signal` aborts if the lock is lost. Other edits are not
   * blocked.
   */
  alone?<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Closes the connections that the store opened. */
  close(): Promise<void>
}
