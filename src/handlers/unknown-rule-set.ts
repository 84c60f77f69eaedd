import { quoted } from '../validation/issues.js'

const maxShown = 10

/** The message about a rule set that does not exist, or about a missing default. `ids` are those of the existing rule sets. */
export function unknownRuleSet(ruleSetId: string | undefined, ids: readonly string[]): string {
  const shown = ids.slice(0, maxShown).map(quoted).join(', ')
  const existing =
    ids.length === 0 ? 'There are no rule sets.' : `Existing: ${shown}${ids.length > maxShown ? ', …' : ''}.`
  return ruleSetId === undefined
    ? `No rule set applies: no ruleSetId is given, and no rule set is the default. ${existing} Set ruleSetId or defaultRuleSetId, or call one rule set "default".`
    : `Rule set ${quoted(ruleSetId)} does not exist. ${existing}`
}
