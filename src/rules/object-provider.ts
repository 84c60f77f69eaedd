import type { RuleSetProvider } from '../core/rule-set-provider.js'
import { inSlices } from '../core/scheduling/steps.js'
import { ruleSetSteps } from './schema/schema.js'

/** Rules from an object in memory. It is read again at each load, so its owner may change it and ask for a reload. */
export function objectRules(document: unknown, source = 'The rules'): RuleSetProvider {
  return { source, load: async () => inSlices(ruleSetSteps(document, source)) }
}
