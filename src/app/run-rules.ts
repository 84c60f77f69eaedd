import { existsSync } from 'node:fs'
import { given } from '../core/given.js'
import type { RuleStore } from '../core/rule-store.js'
import { fileRuleStore } from '../rules/file/file-rule-store.js'
import type { Config } from './config.js'
import { configInvalid } from './config-file.js'
import { mongoRuleStore } from './mongo-rule-store.js'

/**
 * Where a configuration keeps its rules; `undefined` if there is no rules file and nothing says that there has to be one.
 * `path` is a file that was named on the command line.
 */
export function openRuleStore({ rules, areRulesOptional, file }: Config, path?: string): RuleStore | undefined {
  if (path !== undefined) return fileRuleStore(path)
  const { type, uri = '', database, collection } = rules
  if (type === 'mongo') return mongoRuleStore(uri, given({ database, collection }))
  if (type === 'file') return areRulesOptional && !existsSync(rules.path) ? undefined : fileRuleStore(rules.path)
  throw configInvalid(file ?? 'The configuration', [{ path: 'rules.type', message: `${type} is not there yet` }])
}
