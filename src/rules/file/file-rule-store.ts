import { resolve } from 'node:path'
import type { Clock } from '../../core/clock.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import { createRuleStore } from '../store/create-rule-store.js'
import { fileStorage } from './storage.js'

/** Options of `fileRuleStore`. */
export interface FileRuleStoreOptions {
  /** Clock for timestamps, for tests. */
  readonly clock?: Clock
}

/**
 * Creates a rule store in one YAML or JSON file, which can be edited manually as well. Edits keep the comments and the style of
 * the file. Versions and history are kept in separate files in the same directory.
 *
 * @param path Relative to the current working directory. A file whose name ends in `.json` is parsed as JSON, others as YAML.
 */
export function fileRuleStore(path: string, options: FileRuleStoreOptions = {}): RuleStore {
  // Resolved now, so that later changes of the working directory have no effect.
  return createRuleStore(fileStorage(resolve(path), path), options)
}
