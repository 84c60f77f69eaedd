import { existsSync } from 'node:fs'
import type { Config } from '../config/config.js'
import { ruleStoreSettings } from '../config/rules.js'
import type { RuleStore } from '../core/contracts/rule-store.js'
import { openRuleStore } from '../rules/open-rule-store.js'

/**
 * Opens the rule store of a configuration. Returns undefined if the default rules file does not exist. `path` is the value of
 * `--rules` and overrides the configuration.
 */
export function configuredRules(config: Config, path?: string): RuleStore | undefined {
  if (path !== undefined) return openRuleStore({ type: 'file', path })
  const { rules, areRulesOptional } = config
  const isMissing = rules.type === 'file' && areRulesOptional && !existsSync(rules.path)
  return isMissing ? undefined : openRuleStore(ruleStoreSettings(config))
}
