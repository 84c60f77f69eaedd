import type { RuleSet } from '../../core/rule.js'
import { nearest } from '../../validation/nearest.js'
import { UsageError } from '../failure.js'

/**
 * Validates `--rule-set`. Undefined selects the default rule set. Throws if the requested set does not exist, or if there is
 * no default: an unknown rule set would silently limit nothing.
 */
export function knownRuleSet(ruleSets: readonly RuleSet[], requested: string | undefined): string | undefined {
  const ids = ruleSets.map(({ id }) => id)
  const known = ids.length > 20 ? `${ids.slice(0, 20).join(', ')}, …` : ids.join(', ')
  if (requested === undefined) {
    if (ids.length === 1 || ids.includes('default')) return undefined
    if (ids.length === 0) throw new UsageError('The rules contain no rule sets.')
    throw new UsageError(`The rules contain ${ids.length} rule sets. Choose one with --rule-set: ${known}.`)
  }
  if (ids.includes(requested)) return requested
  const suggestion = nearest(requested, ids)
  const hint = suggestion ? ` Did you mean "${suggestion}"?` : ''
  throw new UsageError(`Rule set "${requested}" does not exist.${hint} Known rule sets: ${known}.`)
}
