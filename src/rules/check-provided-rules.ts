import type { ValidationIssue } from '../core/errors.js'
import type { RuleSet } from '../core/rule.js'
import { manyPerStep, type Steps } from '../core/scheduling/steps.js'
import { isObject, itemsOf } from '../validation/fields.js'
import { noIssues, rulesInvalid } from '../validation/issues.js'
import { wrongValue } from '../validation/kind.js'

/** A check beyond the rule schema, as `RuleSetProvider.require` takes it. Returns the issues it finds. */
export type RuleRequirement = (ruleSets: readonly RuleSet[]) => readonly ValidationIssue[]

const allowed = 'rule sets returned by parseRuleSets'

/**
 * Checks that a provider loaded parsed rule sets, not rule documents: custom providers are not always type-checked.
 * The requirement is only called with parsed rule sets. Throws `FLUXGATE_RULES_INVALID` with every issue.
 */
export function* checkProvidedRules(
  loaded: unknown,
  source: string,
  requirement?: RuleRequirement,
): Steps<readonly RuleSet[]> {
  const issues = noIssues()
  const sets = itemsOf(loaded)
  if (sets === undefined) issues.add('ruleSets', wrongValue(loaded, allowed))
  for (const [index, set] of (sets ?? []).entries()) {
    const place = `ruleSets[${index}]`
    const rules = isObject(set) && typeof set.id === 'string' && 'strategy' in set ? itemsOf(set.rules) : undefined
    if (rules === undefined) issues.add(place, wrongValue(set, allowed))
    for (const [at, rule] of (rules ?? []).entries()) {
      if (!isParsed(rule)) issues.add(`${place}.rules[${at}]`, wrongValue(rule, allowed))
      if (at % manyPerStep === 0) yield
    }
  }
  const ruleSets = loaded as readonly RuleSet[]
  const requirementIssues = issues.count === 0 ? requirement?.(ruleSets) : undefined
  for (const { path, message } of requirementIssues ?? []) issues.add(path, message)
  if (issues.count > 0) throw rulesInvalid(source, issues)
  return ruleSets
}

function isParsed(rule: unknown): boolean {
  if (!isObject(rule) || !Array.isArray(rule.methods) || !Array.isArray(rule.when)) return false
  return itemsOf(rule.bands)?.every((band) => isObject(band) && typeof band.windowTicks === 'number') ?? false
}
