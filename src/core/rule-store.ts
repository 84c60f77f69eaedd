/**
 * Where rules are kept and edited: a file, Redis or MongoDB. All of them pass one contract suite
 * (`ruleStoreContract` in `fluxgate-js/testing`), which says in examples what this file says in words.
 */
import type { RuleSetProvider } from './rule-set-provider.js'

/** A rule as its owner wrote it, with what the store adds: `createdAt`, `updatedAt`, `version`. */
export type RuleDocument = Readonly<Record<string, unknown>> & { readonly id: string }

/** What a rule set says besides its rules. */
export interface RuleSetHead {
  readonly id: string
  readonly description?: string
  readonly strategy?: 'all' | 'first'
  readonly caseSensitive?: boolean
}

export interface RuleSetDocument extends RuleSetHead {
  /** Grows with every change of the set or of one of its rules. */
  readonly version: number
  /** By priority, highest first; ties by id. */
  readonly rules: readonly RuleDocument[]
}

/** Who changes something, and what they believe to be there. */
export interface Edit {
  /** For the history; never a secret. */
  readonly by: string
  /**
   * The version that the editor has seen; 0 for what must not exist yet. Anything else than what is there rejects with
   * FLUXGATE_RULES_CONFLICT and changes nothing. Left out: whatever is there.
   */
  readonly ifVersion?: number | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  /** Where the next page begins; `null` after the last one. Opaque, safe in a URL. */
  readonly cursor: string | null
}

export interface PageQuery {
  readonly limit: number
  readonly cursor?: string | undefined
}

export interface RuleQuery extends PageQuery {
  /** Text that id, name, description or path contain, whatever the case. */
  readonly q?: string | undefined
  readonly enabled?: boolean | undefined
}

/** One change, newest first in a history. */
export interface HistoryEntry {
  readonly at: string
  readonly by: string
  readonly action: 'PUT_SET' | 'DELETE_SET' | 'PUT_RULE' | 'DELETE_RULE'
  readonly ruleSetId: string
  readonly ruleId: string | null
  /** Of what was changed, after the change. */
  readonly version: number
  /** The document before and after; `null` where there was, or is, none. */
  readonly before: unknown
  readonly after: unknown
}

/**
 * Every change is atomic, checked before it is made (FLUXGATE_RULES_INVALID lists each mistake and nothing is written), told to other
 * processes where the store can, and in the history. `attributes` come back as they were written (`parseJson`, `jsonText`), whatever else is edited.
 */
export interface RuleStore extends RuleSetProvider {
  listRuleSets(query: PageQuery): Promise<Page<RuleSetDocument>>
  getRuleSet(id: string): Promise<RuleSetDocument | undefined>
  /** Creates or replaces a set with all its rules. Rules that stay the same keep their version. */
  putRuleSet(document: unknown, edit: Edit): Promise<{ readonly document: RuleSetDocument; readonly created: boolean }>
  /** Whether there was one. */
  deleteRuleSet(id: string, edit: Edit): Promise<boolean>
  /** Rejects with FLUXGATE_RULE_SET_UNKNOWN where there is no such set. */
  listRules(ruleSetId: string, query: RuleQuery): Promise<Page<RuleDocument>>
  getRule(ruleSetId: string, ruleId: string): Promise<RuleDocument | undefined>
  /** Creates or replaces one rule of a set that exists. */
  putRule(
    ruleSetId: string,
    document: unknown,
    edit: Edit,
  ): Promise<{ readonly document: RuleDocument; readonly created: boolean }>
  deleteRule(ruleSetId: string, ruleId: string, edit: Edit): Promise<boolean>
  history(ruleSetId: string, query: PageQuery): Promise<Page<HistoryEntry>>
  /**
   * Present if processes that edit can keep out of each other's way: work that runs alone runs while no other such work does,
   * anywhere. Its signal aborts if that can no longer be relied on. Single edits are not kept out.
   */
  alone?<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
  close(): Promise<void>
}
