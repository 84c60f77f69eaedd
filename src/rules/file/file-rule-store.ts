import { resolve } from 'node:path'
import type { Clock } from '../../core/clock.js'
import type { RuleStore } from '../../core/rule-store.js'
import { ruleStoreOf } from '../store/rule-store-of.js'
import { fileStorage } from './file-storage.js'

export interface FileRuleStoreOptions {
  readonly clock?: Clock
}

/**
 * Rules in one YAML or JSON file, by its ending, edited by hand and through the store. The file keeps its comments and
 * its style; versions and the history are kept in files beside it.
 */
export function fileRuleStore(path: string, options: FileRuleStoreOptions = {}): RuleStore {
  // Later changes of the working directory must not change which file it is.
  return ruleStoreOf(fileStorage(resolve(path), path), options)
}
