import type { RuleSet } from '../../core/rule.js'
import { nearest } from '../../validation/nearest.js'
import { UsageError } from '../failure.js'

/** The `--rule-set` to use. Without a set nothing is limited, which is hardly what somebody meant who brought rules. */
export function knownRuleSet(ruleSets: readonly RuleSet[], asked: string | undefined): string | undefined {
  const ids = ruleSets.map(({ id }) => id)
  const known = ids.length > 20 ? `${ids.slice(0, 20).join(', ')}, …` : ids.join(', ')
  if (asked === undefined) {
    if (ids.length === 1 || ids.includes('default')) return undefined
    if (ids.length === 0) throw new UsageError('There are no rule sets in these rules.')
    throw new UsageError(`There are ${ids.length} rule sets; choose one with --rule-set: ${known}.`)
  }
  if (ids.includes(asked)) return asked
  const meant = nearest(asked, ids)
  throw new UsageError(`There is no rule set "${asked}".${meant ? ` Did you mean "${meant}"?` : ''} Known: ${known}.`)
}
