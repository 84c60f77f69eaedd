import { createHash } from 'node:crypto'
import type { RuleSet } from '../core/rule.js'
import type { Steps } from '../core/scheduling/steps.js'

/** A call of the hash costs more than the text of a rule, so that several are hashed at once. */
const rulesPerStep = 16

/** Equal for rules that mean the same: parsed rules have their fields in one order, however they were written. */
export function* ruleSetsDigest(ruleSets: readonly RuleSet[]): Steps<string> {
  const hash = createHash('sha256')
  for (const { rules, ...head } of ruleSets) {
    let text = `${JSON.stringify(head)}\n`
    for (const [index, rule] of rules.entries()) {
      text += `${JSON.stringify(rule)}\n`
      if (index % rulesPerStep !== rulesPerStep - 1) continue
      hash.update(text)
      text = ''
      yield
    }
    hash.update(text)
  }
  return hash.digest('base64')
}
