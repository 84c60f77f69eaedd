import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import type { HistoryEntry, RuleDocument, RuleSetHead } from '../../core/contracts/rule-store.js'

/**
 * The backend of a rule store. `createRuleStore` implements validation, versions and the planning of edits for all backends; a
 * storage only reads, and commits planned changes.
 */
export interface RuleStorage extends Pick<RuleSetProvider, 'source' | 'watch' | 'watchKind' | 'canWatch'> {
  /** Reads a consistent snapshot of one rule set. */
  read(ruleSetId: string): Promise<RuleSetState>
  /** Optional: reads one rule without reading its rule set. */
  readRule?(ruleSetId: string, ruleId: string): Promise<RuleDocument | undefined>
  /** Reads every rule set, each as a consistent snapshot. */
  readAll(): Promise<readonly ExistingRuleSet[]>
  /** Optional: loads a document with all rules, without versions and timestamps, if that is cheaper than `readAll`. */
  loadDocument?(): Promise<unknown>
  /**
   * Applies the change and its history entry atomically if the rule set still has the version `from`. Otherwise changes
   * nothing and resolves to false. Rejects with a FluxGateError if the change cannot be written.
   */
  commit(change: RuleSetChange): Promise<boolean>
  /** The latest changes that led to a version below `below`, newest first. */
  history(ruleSetId: string, below: number, limit: number): Promise<readonly NumberedEntry[]>
  /**
   * Optional: searches with indexes; without it, the whole rule set is read. Returns rules in the order of
   * `compareDocuments`, or `undefined` if the rule set does not exist.
   */
  findRules?(ruleSetId: string, search: RuleSearch): Promise<readonly RuleDocument[] | undefined>
  /** See `RuleStore.alone`. */
  alone?<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The stored state of a rule set, which may not exist or no longer exist. */
export interface RuleSetState {
  /** The number of changes, including removals, so that a version is never reused; 0 if the rule set never existed. */
  readonly version: number
  /** The highest version of its removed rules; a new rule starts above it. 0 if no rule was removed. */
  readonly removedVersion: number
  /** Omitted if the rule set does not exist. */
  readonly head?: RuleSetHead
  /** In any order, each with `version`, `createdAt` and `updatedAt`. */
  readonly rules: readonly RuleDocument[]
}

/** An existing rule set. */
export interface ExistingRuleSet extends RuleSetState {
  readonly head: RuleSetHead
}

export interface RuleSetChange {
  readonly ruleSetId: string
  readonly from: number
  /** The state after the change, with the version `from + 1`. Without a head, the rule set is removed. */
  readonly after: RuleSetState
  /** The difference: rules to write, and ids of rules to remove. Other rules are unchanged. */
  readonly put: readonly RuleDocument[]
  readonly remove: readonly string[]
  readonly entry: HistoryEntry
}

/** A history entry and the version of the rule set after the change. */
export interface NumberedEntry {
  readonly setVersion: number
  readonly entry: HistoryEntry
}

export interface RuleSearch {
  /** In lower case; one of `searchedFields` contains it, ignoring case. */
  readonly q?: string | undefined
  readonly enabled?: boolean | undefined
  /** Returns only rules after this one. */
  readonly after?: { readonly priority: number; readonly id: string } | undefined
  readonly limit: number
}
