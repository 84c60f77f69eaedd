import type { RuleSetProvider } from '../../core/rule-set-provider.js'
import type { HistoryEntry, RuleDocument, RuleSetHead } from '../../core/rule-store.js'

/**
 * What a place must be able to do so that rules can be kept and edited there. What an edit means, its checks and its
 * versions are the same everywhere (`ruleStoreOf`); a storage reads, and makes a change that was worked out already.
 */
export interface RuleStorage extends Pick<RuleSetProvider, 'source' | 'watch' | 'watchKind' | 'canWatch'> {
  /** One set, from one moment: never some rules from before a change and some from after it. */
  read(ruleSetId: string): Promise<Kept>
  /** Present if one rule can be read without its set. */
  readRule?(ruleSetId: string, ruleId: string): Promise<RuleDocument | undefined>
  /** Every set that exists, each from one moment. */
  readAll(): Promise<readonly KeptRuleSet[]>
  /** Present if what rules say can be had for less than with versions and times: a document with all of them. */
  loadDocument?(): Promise<unknown>
  /**
   * Makes the whole change and keeps its entry, if the set still has the version `from`; else does nothing at all and
   * answers false. Rejects with a FluxGateError if it cannot be written.
   */
  commit(change: RuleSetChange): Promise<boolean>
  /** The latest changes of a set after which it had a version below `below`, newest first. */
  history(ruleSetId: string, below: number, limit: number): Promise<readonly NumberedEntry[]>
  /**
   * Present if the place has indexes of its own; otherwise a set is read whole. In the order of `compareDocuments`;
   * `undefined` if there is no such set.
   */
  findRules?(ruleSetId: string, search: RuleSearch): Promise<readonly RuleDocument[] | undefined>
  /** As of a `RuleStore`. */
  alone?<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** What is known of a set, whether it exists or not. */
export interface Kept {
  /** How often it was changed, its removal included, so that no version comes twice; 0 if it has never been there. */
  readonly version: number
  /** The highest version of all its rules that were removed: a new rule begins above it. 0 if there are none. */
  readonly removedVersion: number
  /** Left out if there is no such set, or not any more. */
  readonly head?: RuleSetHead
  /** In any order, each with `version`, `createdAt` and `updatedAt`. */
  readonly rules: readonly RuleDocument[]
}

/** A set that exists. */
export interface KeptRuleSet extends Kept {
  readonly head: RuleSetHead
}

export interface RuleSetChange {
  readonly ruleSetId: string
  readonly from: number
  /** What is to be there after the change: the version is `from + 1`; without a head, the set is gone. */
  readonly after: Kept
  /** The part of it that is new: rules to write, and the ids of rules to remove. All others stay as they are. */
  readonly put: readonly RuleDocument[]
  readonly remove: readonly string[]
  readonly entry: HistoryEntry
}

/** A change and the version that the set had after it. */
export interface NumberedEntry {
  readonly setVersion: number
  readonly entry: HistoryEntry
}

export interface RuleSearch {
  /** Lower case, and contained in one of `searchedFields` in lower case. */
  readonly q?: string | undefined
  readonly enabled?: boolean | undefined
  /** Only rules that come after this one. */
  readonly after?: { readonly priority: number; readonly id: string } | undefined
  readonly limit: number
}
