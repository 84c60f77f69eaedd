import type { Rule } from '../../core/rule.js'
import type { Call } from '../request/route.js'
import type { ServedGate } from '../served-gate.js'
import { inQuotes, nothingHere } from './rule-editing.js'

/** The rule of the URL as it is in force. Throws 404. */
export function ruleInForce({ ruleSets }: ServedGate, { id: ruleSetId = '', ruleId = '' }: Call['params']) {
  const rule: Rule | undefined = ruleSets.find(({ id }) => id === ruleSetId)?.rules.find(({ id }) => id === ruleId)
  if (rule !== undefined) return { ruleSetId, ruleId, rule }
  throw nothingHere(`Rule ${inQuotes(ruleId)} of rule set ${inQuotes(ruleSetId)} is not in force.`)
}
