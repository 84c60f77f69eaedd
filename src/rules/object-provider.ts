import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import { inSlices } from '../core/scheduling/steps.js'
import { ruleSetSteps } from './schema/parse-rules.js'

/**
 * Creates a rule provider for a document in memory. Each load reads the document again, so a change takes effect with the next
 * reload.
 */
export function objectRules(document: unknown, source = 'The rules'): RuleSetProvider {
  return { source, load: async () => inSlices(ruleSetSteps(document, source)) }
}
