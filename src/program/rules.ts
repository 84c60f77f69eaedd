import { existsSync } from 'node:fs'
import type { Config } from '../config/config.js'
import { ruleStoreSettings } from '../config/rules.js'
import type { RuleStore } from '../core/rule-store.js'
import { openRuleStore } from '../rules/open-rule-store.js'

/**
 * Where a configuration keeps its rules; `undefined` if there is no rules file and nothing says that there has to be one.
 * `path` is a file that was named on the command line.
 */
export function configuredRules(config: Config, path?: string): RuleStore | undefined {
  if (path !== undefined) return openRuleStore({ type: 'file', path })
  const { rules, areRulesOptional } = config
  const isMissing = rules.type === 'file' && areRulesOptional && !existsSync(rules.path)
  return isMissing ? undefined : openRuleStore(ruleStoreSettings(config))
}
