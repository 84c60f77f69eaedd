import type { RuleDocument, RuleSetDocument } from '../../core/rule-store.js'
import { algorithmKind } from '../../rules/schema/band-schema.js'

/**
 * A rule as the OpenAPI document describes it: people may write `token-bucket`, clients compare with `TOKEN_BUCKET`. All
 * other enumerations have a fixed spelling. The rule itself where nothing is spelt differently.
 */
export function canonicalRule(rule: RuleDocument): RuleDocument {
  const { bands } = rule
  const own = canonicalAlgorithm(rule)
  if (!Array.isArray(bands) || bands.every((band) => canonicalAlgorithm(band) === band)) return own
  return { ...own, bands: bands.map(canonicalAlgorithm) }
}

export function canonicalSet(set: RuleSetDocument): RuleSetDocument {
  const rules = set.rules.map(canonicalRule)
  return rules.every((rule, index) => rule === set.rules[index]) ? set : { ...set, rules }
}

function canonicalAlgorithm<T extends object>(document: T): T {
  const { algorithm } = document as { readonly algorithm?: unknown }
  const name = algorithm === undefined ? undefined : algorithmKind.parse(algorithm)
  return name === undefined || name === algorithm ? document : { ...document, algorithm: name }
}
