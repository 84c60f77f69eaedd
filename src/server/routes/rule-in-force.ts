import type { Rule } from '../../core/rule.js'
import type { Call } from '../request/route.js'
import type { ServedGate } from '../served-gate.js'
import { inQuotes, nothingHere } from './rule-editing.js'

/** The rule that a URL names, as decisions are made by it. Throws 404. */
export function ruleInForce({ ruleSets }: ServedGate, { id: ruleSetId = '', ruleId = '' }: Call['params']) {
  const rule: Rule | undefined = ruleSets.find(({ id }) => id === ruleSetId)?.rules.find(({ id }) => id === ruleId)
  if (rule !== undefined) return { ruleSetId, ruleId, rule }
  throw nothingHere(`There is no rule ${inQuotes(ruleId)} in rule set ${inQuotes(ruleSetId)} in force.`)
}
