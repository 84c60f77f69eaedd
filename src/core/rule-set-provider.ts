import type { Mistake } from './errors.js'
import type { RuleSet } from './rule.js'

/** Where rules are kept: a file, objects in memory, or whatever an implementer chooses. */
export interface RuleSetProvider {
  /** All rule sets, parsed. Rejects with a FluxGateError when they cannot be read or have mistakes. */
  load(): Promise<readonly RuleSet[]>
  /** For people: where the rules come from, as it appears in messages. */
  readonly source: string
  /** Present if the provider notices changes by itself; calls back soon after one. The result stops watching. */
  watch?(onChange: () => void, onError: (error: unknown) => void): () => void
  /** How `watch` learns of changes, as health names it; WATCH if left out. */
  readonly watchKind?: 'WATCH' | 'PUBSUB'
  /** Whether what stands behind the provider lets itself be watched; asked once, before `watch`. Left out: it does. */
  canWatch?(): Promise<boolean>
  /**
   * Present if of all processes with these rules one looks for changes that nobody has announced, and tells the others:
   * whether it is this one.
   */
  isPoller?(): Promise<boolean>
  /**
   * Present if rules are edited through this provider. An edit is answered only after every listener has settled, so that it
   * is in force by then in this process. The result stops listening.
   */
  onEdit?(listener: (edited: EditedRules) => Promise<unknown>): () => void
  /**
   * Present with `onEdit`: what else has to be true of rules that are put there, because whoever decides by them here could
   * not use them otherwise. The result takes it back.
   */
  require?(check: (ruleSets: readonly RuleSet[]) => readonly Mistake[]): () => void
}

/** What an edit was about. */
export interface EditedRules {
  readonly ruleSetId: string
  /** The rules that are gone now. */
  readonly removed: readonly string[]
}

/** Why rules are to be loaded again: `poll` without any sign of a change, to see whether there is one. */
export interface ReloadRequest {
  readonly poll?: boolean
}

/** Decides when rules are loaded again. */
export interface ReloadStrategy {
  /** As health names it: WATCH, PUBSUB, POLLING, NONE, or one of your own. */
  readonly name: string
  /**
   * Starts asking for reloads, each of which rejects if the rules could not be loaded; the result stops it. One that is asked
   * for as a `poll`, without any sign of a change, is a reload only if something has changed.
   */
  start(reload: (asked?: ReloadRequest) => Promise<void>): () => void
}
