import type { RuleSet } from '../core/rule.js'
import { manyPerStep, type Steps } from '../core/scheduling/steps.js'
import { isObject, itemsOf, wrongValue } from '../validation/fields.js'
import { noMistakes, rulesInvalid } from '../validation/issues.js'
import type { Requirement } from './requirement.js'

const allowed = 'rule sets as parseRuleSets gives them'

/**
 * What a provider has loaded, if it is rule sets as they are read and not as they are written: only those can be decided by.
 * Providers written by others need not be in TypeScript. The requirement is asked about nothing else.
 */
export function* loadedSteps(loaded: unknown, source: string, requirement?: Requirement): Steps<readonly RuleSet[]> {
  const mistakes = noMistakes()
  const sets = itemsOf(loaded)
  if (sets === undefined) mistakes.add('ruleSets', wrongValue(loaded, allowed))
  for (const [index, set] of (sets ?? []).entries()) {
    const place = `ruleSets[${index}]`
    const rules = isObject(set) && typeof set.id === 'string' && 'strategy' in set ? itemsOf(set.rules) : undefined
    if (rules === undefined) mistakes.add(place, wrongValue(set, allowed))
    for (const [at, rule] of (rules ?? []).entries()) {
      if (!isRead(rule)) mistakes.add(`${place}.rules[${at}]`, wrongValue(rule, allowed))
      if (at % manyPerStep === 0) yield
    }
  }
  const ruleSets = loaded as readonly RuleSet[]
  const unmet = mistakes.count === 0 ? requirement?.(ruleSets) : undefined
  for (const { path, message } of unmet ?? []) mistakes.add(path, message)
  if (mistakes.count > 0) throw rulesInvalid(source, mistakes)
  return ruleSets
}

function isRead(rule: unknown): boolean {
  if (!isObject(rule) || !Array.isArray(rule.methods) || !Array.isArray(rule.when)) return false
  return itemsOf(rule.bands)?.every((band) => isObject(band) && typeof band.windowTicks === 'number') ?? false
}
