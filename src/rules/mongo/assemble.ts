import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { eachInSteps, filterInSteps, manyPerStep, mapInSteps, type Steps } from '../../core/scheduling/steps.js'
import { noIssues, placeOf, rulesInvalid } from '../../validation/issues.js'
import { wrongValue } from '../../validation/kind.js'
import type { RuleSetState } from '../store/rule-storage.js'
import type { MongoDocument } from './database.js'
import { digestOf, fromMongo, withVersion } from './document.js'
import { type MongoHead, pendingChange, ruleMarks, ruleSetHead } from './head.js'

export interface AssembledRuleSet extends RuleSetState {
  /** Rules were edited by another program. `version` is the version that this edit gets. */
  readonly hasOutsideEdits: boolean
}

/** Assembles every rule set that has a head or a rule. Throws `FLUXGATE_RULES_INVALID` if a document has no rule set id. */
export function* assembleAll(
  heads: ReadonlyMap<string, MongoHead>,
  documents: readonly MongoDocument[],
  source: string,
): Steps<Map<string, AssembledRuleSet>> {
  const bySet = new Map<string, MongoDocument[]>([...heads.keys()].map((id) => [id, []]))
  const issues = noIssues()
  const addToSet = (document: MongoDocument): void => {
    const { _id, ruleSetId } = document
    const list = bySet.get(String(ruleSetId)) ?? []
    if (typeof ruleSetId === 'string') bySet.set(ruleSetId, list)
    else issues.add(placeOf(placeOf('', String(_id)), 'ruleSetId'), wrongValue(ruleSetId, 'the id of a rule set'))
    list.push(document)
  }
  yield* eachInSteps(documents, addToSet, manyPerStep)
  if (issues.count > 0) throw rulesInvalid(source, issues)
  const sets = new Map<string, AssembledRuleSet>()
  for (const [id, list] of bySet) sets.set(id, yield* assemble(id, heads.get(id), list))
  return sets
}

/**
 * Assembles a rule set from its head and the documents of its rules. A committed change counts as applied even if some
 * documents are not updated yet. A rule whose document differs from the last write was edited by another program and gets a
 * new version.
 */
export function* assemble(
  ruleSetId: string,
  head: MongoHead | undefined,
  documents: readonly MongoDocument[],
): Steps<AssembledRuleSet> {
  const marks = new Map((head && (yield* ruleMarks(head)))?.map((mark) => [mark[0], mark]))
  let removedVersion = head?.removedVersion ?? 0
  let hasOutsideEdits = false
  const found = yield* withPendingChange(head, yield* mapInSteps(documents, fromMongo))
  const rules = yield* mapInSteps(found, (rule): RuleDocument => {
    const [, version, lastDigest] = marks.get(rule.id) ?? []
    marks.delete(rule.id)
    const digest = digestOf(rule)
    if (version !== undefined && digest === lastDigest) return withVersion(rule, version, digest)
    hasOutsideEdits = true
    return withVersion(rule, (version ?? removedVersion) + 1, digest)
  })
  // The documents of the remaining rules were deleted by another program.
  for (const [, version] of marks.values()) {
    hasOutsideEdits = true
    removedVersion = Math.max(removedVersion, version + 1)
  }
  const exists = head?.exists === true || rules.length > 0
  return {
    version: (head?.version ?? 0) + (hasOutsideEdits ? 1 : 0),
    removedVersion,
    ...(exists && { head: head?.exists ? ruleSetHead(head) : { id: ruleSetId } }),
    rules,
    hasOutsideEdits,
  }
}

function* withPendingChange(
  head: MongoHead | undefined,
  rules: readonly RuleDocument[],
): Steps<readonly RuleDocument[]> {
  const todo = head && (yield* pendingChange(head))
  if (todo === undefined) return rules
  const changed = new Set([...todo.remove, ...todo.put.map(({ id }) => id)])
  return [...(yield* filterInSteps(rules, ({ id }) => !changed.has(id), manyPerStep)), ...todo.put]
}
