import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import type { RuleStore } from '../core/contracts/rule-store.js'
import { FluxGateError } from '../core/errors.js'
import { unknownRuleSet } from '../handlers/unknown-rule-set.js'
import { fileRuleStore } from '../rules/file/file-rule-store.js'
import { objectRules } from '../rules/object-provider.js'
import { openRuleStore, type RulesSettings } from '../rules/open-rule-store.js'
import { isObject } from '../validation/fields.js'
import type { FluxGate } from './flux-gate.js'
import type { FluxGateOptions } from './options.js'

/** Opens rules from a path, settings or objects. Returns a provider unchanged. */
export function openRules(rules: FluxGateOptions['rules']): RuleSetProvider {
  if (typeof rules === 'string') return fileRuleStore(rules)
  if (isProvider(rules)) return rules
  if (isSettings(rules)) return openRuleStore(rules)
  if (rules !== undefined) return objectRules(rules)
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    "The rules option is missing. Pass a path such as './rules.yaml', rule sets as objects, or a RuleSetProvider.",
  )
}

/** True if the rules may change by themselves. Rules given as objects never do. */
export const canChange = (rules: FluxGateOptions['rules']): boolean =>
  typeof rules === 'string' || isProvider(rules) || isSettings(rules)

const isProvider = (rules: FluxGateOptions['rules']): rules is RuleSetProvider =>
  isObject(rules) && 'load' in rules && typeof rules.load === 'function'

const isSettings = (rules: FluxGateOptions['rules']): rules is RulesSettings =>
  isObject(rules) && Object.hasOwn(rules, 'type')

/** True for a rule store, which must be closed. */
export const isRuleStore = (rules: RuleSetProvider): rules is RuleStore => 'putRule' in rules && 'close' in rules

/** A default that does not exist is an error if the rules cannot change, and a warning otherwise. */
export function checkDefaultRuleSet(
  { defaultRuleSetId: id, rules }: FluxGateOptions,
  { defaultRuleSetId, ruleSets, warnings }: Pick<FluxGate, 'defaultRuleSetId' | 'ruleSets' | 'warnings'>,
): void {
  if (id === undefined || defaultRuleSetId === id) return
  const known = ruleSets.map((set) => set.id)
  const message = `defaultRuleSetId: ${unknownRuleSet(id, known)}`
  if (!canChange(rules)) throw new FluxGateError('FLUXGATE_RULE_SET_UNKNOWN', message)
  warnings.warn('FLUXGATE_RULE_SET_UNKNOWN', message)
}
