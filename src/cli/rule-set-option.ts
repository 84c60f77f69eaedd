import type { RuleSet } from '../core/rule.js'
import { nearest } from '../rules/nearest.js'
import { UsageError } from './failure.js'

/** The `--rule-set` as given. One that does not exist would decide nothing, which is hardly what was meant. */
export function knownRuleSet(ruleSets: readonly RuleSet[], asked: string | undefined): string | undefined {
  const ids = ruleSets.map(({ id }) => id)
  if (asked === undefined || ids.includes(asked)) return asked
  const meant = nearest(asked, ids)
  const known = ids.length > 20 ? `${ids.slice(0, 20).join(', ')}, …` : ids.join(', ')
  throw new UsageError(`There is no rule set "${asked}".${meant ? ` Did you mean "${meant}"?` : ''} Known: ${known}.`)
}
