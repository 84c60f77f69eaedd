import { createHash } from 'node:crypto'
import type { RuleSet } from '../core/rule.js'
import type { Steps } from '../core/scheduling/steps.js'

/** Rules are hashed in batches, because each call of the hash costs more than serializing a rule. */
const rulesPerStep = 16

/** Returns a digest of the parsed rules. It does not depend on how the documents were written, because parsed fields have a fixed order. */
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
