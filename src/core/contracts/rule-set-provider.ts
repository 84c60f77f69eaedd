import type { ValidationIssue } from '../errors.js'
import type { RuleSet } from '../rule.js'

/** A source of rules: a file, objects in memory, a database, or an implementation of your own. */
export interface RuleSetProvider {
  /** Loads and parses all rule sets. Rejects with a FluxGateError if they cannot be read or are invalid. */
  load(): Promise<readonly RuleSet[]>
  /** A description of the source for messages, such as a file name. */
  readonly source: string
  /** Calls `onChange` soon after the rules have changed. Returns a function that stops watching. Omit it if changes cannot be detected. */
  watch?(onChange: () => void, onError: (error: unknown) => void): () => void
  /** How `watch` detects changes, as reported by `health()`. Default WATCH. */
  readonly watchKind?: 'WATCH' | 'PUBSUB'
  /** Resolves to false if the source does not support `watch`. Called once, before `watch`. Default: true. */
  canWatch?(): Promise<boolean>
  /**
   * Set if a single elected process polls for unannounced changes and notifies the others. Resolves to true if this process
   * is elected.
   */
  isPoller?(): Promise<boolean>
  /**
   * Set if rules can be edited through this provider. An edit completes after all listeners have settled, so a completed edit
   * is in effect in this process. Returns a function that removes the listener.
   */
  onEdit?(listener: (edited: EditedRules) => Promise<unknown>): () => void
  /**
   * Set together with `onEdit`. Adds a validator for edits, for requirements of this process such as registered key
   * resolvers. Returns a function that removes the validator.
   */
  require?(check: (ruleSets: readonly RuleSet[]) => readonly ValidationIssue[]): () => void
}

/** The rule set that an edit has changed. */
export interface EditedRules {
  /** The id of the changed rule set. */
  readonly ruleSetId: string
  /** The ids of the removed rules. */
  readonly removed: readonly string[]
}

/** The cause of a reload. */
export interface ReloadRequest {
  /** True if there is no sign of a change. The rules then take effect only if they differ from the current ones. */
  readonly poll?: boolean
}

/** Decides when rules are reloaded. */
export interface ReloadStrategy {
  /** The name in `health()`: WATCH, PUBSUB, POLLING, NONE, or a name of your own. */
  readonly name: string
  /**
   * Starts calling `reload`, which rejects if the rules could not be loaded. A call with `poll` counts as a reload only if the
   * rules have changed. Returns a function that stops the strategy.
   */
  start(reload: (request?: ReloadRequest) => Promise<void>): () => void
}
