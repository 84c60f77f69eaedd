/** Edits of candidates. A candidate is stored as a rule set of its own, so every rule store keeps it, with its history. */
import type { Edit, RuleSetDocument, RuleStore } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import { candidateIdOf } from '../../core/rule.js'

type Store = Pick<RuleStore, 'getRuleSet' | 'putRuleSet' | 'deleteRuleSet'>

/** The stored candidate of a rule set, or undefined. */
export async function getCandidate(store: Store, ruleSetId: string): Promise<RuleSetDocument | undefined> {
  const found = await store.getRuleSet(candidateIdOf(ruleSetId))
  return found?.candidateOf === ruleSetId ? found : undefined
}

/** Creates or replaces the candidate of a rule set, which must exist. */
export async function putCandidate(
  store: Store,
  ruleSetId: string,
  document: object,
  edit: Edit,
): Promise<{ readonly document: RuleSetDocument; readonly created: boolean }> {
  if ((await store.getRuleSet(ruleSetId)) === undefined)
    throw new FluxGateError(
      'FLUXGATE_RULE_SET_UNKNOWN',
      `There is no rule set "${ruleSetId}". Correct the id, or create the set first.`,
    )
  const id = candidateIdOf(ruleSetId)
  const stored = await store.getRuleSet(id)
  if (stored !== undefined && stored.candidateOf !== ruleSetId)
    throw new FluxGateError(
      'FLUXGATE_RULES_CONFLICT',
      `The id "${id}" belongs to a rule set that is not a candidate. Rename that rule set.`,
    )
  return store.putRuleSet({ ...document, id, candidateOf: ruleSetId }, edit)
}

/** Replaces the rule set with its candidate, then removes the candidate. `edit.ifVersion` is the version of the rule set. */
export async function promoteCandidate(store: Store, ruleSetId: string, edit: Edit): Promise<RuleSetDocument> {
  const candidate = await getCandidate(store, ruleSetId)
  if (candidate === undefined) throw noCandidate(ruleSetId)
  const { candidateOf: _, version, ...document } = candidate
  const { document: promoted } = await store.putRuleSet({ ...document, id: ruleSetId }, edit)
  // A candidate that was changed in the meantime stays.
  await store.deleteRuleSet(candidate.id, { by: edit.by, ifVersion: version }).catch((error: unknown) => {
    if (!(error instanceof FluxGateError) || error.code !== 'FLUXGATE_RULES_CONFLICT') throw error
  })
  return promoted
}

/** Removes the candidate. Resolves to false if there was none. */
export async function dropCandidate(store: Store, ruleSetId: string, edit: Edit): Promise<boolean> {
  const candidate = await getCandidate(store, ruleSetId)
  return candidate !== undefined && store.deleteRuleSet(candidate.id, edit)
}

export const noCandidate = (ruleSetId: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CANDIDATE_UNKNOWN',
    `There is no candidate of rule set "${ruleSetId}". Correct the id, or put a candidate first.`,
  )
