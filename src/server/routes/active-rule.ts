import type { Rule } from '../../core/rule.js'
import type { Call } from '../request/route.js'
import type { ServerGate } from '../server-gate.js'
import { notFound, quotedId } from './edit-request.js'

/** The current rule that the URL names. Throws 404. */
export function activeRule({ ruleSets }: ServerGate, { id: ruleSetId = '', ruleId = '' }: Call['params']) {
  const rule: Rule | undefined = ruleSets.find(({ id }) => id === ruleSetId)?.rules.find(({ id }) => id === ruleId)
  if (rule !== undefined) return { ruleSetId, ruleId, rule }
  throw notFound(`Rule ${quotedId(ruleId)} of rule set ${quotedId(ruleSetId)} is not in effect.`)
}
