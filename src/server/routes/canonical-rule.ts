import type { RuleDocument, RuleSetDocument } from '../../core/contracts/rule-store.js'
import { manyPerStep, mapInSteps, type Steps } from '../../core/scheduling/steps.js'
import { algorithmKind } from '../../rules/schema/fields/band-schema.js'

/**
 * A rule as the OpenAPI document describes it: `algorithm` has its canonical name, because rules may spell it `token-bucket`
 * while clients compare it with `TOKEN_BUCKET`. All other enumerations have one spelling. Returns the same object if nothing
 * changes.
 */
export function canonicalRule(rule: RuleDocument): RuleDocument {
  const { bands } = rule
  const own = canonicalAlgorithm(rule)
  if (!Array.isArray(bands) || bands.every((band) => canonicalAlgorithm(band) === band)) return own
  return { ...own, bands: bands.map(canonicalAlgorithm) }
}

export function* canonicalSet(set: RuleSetDocument): Steps<RuleSetDocument> {
  return { ...set, rules: yield* mapInSteps(set.rules, canonicalRule, manyPerStep) }
}

function canonicalAlgorithm<T extends object>(document: T): T {
  const { algorithm } = document as { readonly algorithm?: unknown }
  const name = algorithm === undefined ? undefined : algorithmKind.parse(algorithm)
  return name === undefined || name === algorithm ? document : { ...document, algorithm: name }
}
