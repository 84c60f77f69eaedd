/**
 * Plans edits: pure functions from the stored state and the requested state to the change to commit, or to `undefined` if
 * nothing changes. Versions never decrease, not even after a removal, so a version always identifies the same content.
 */
import { FluxGateError } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { Edit, HistoryEntry, RuleDocument, RuleSetHead } from '../../core/rule-store.js'
import { eachInSteps, manyPerStep, mapInSteps, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import { noIssues, rulesInvalid } from '../../validation/issues.js'
import { crowdedGlob } from '../schema/crowded-globs.js'
import { maxRulesPerSet } from '../schema/schema.js'
import { compareDocuments, isSameRule, setDocument, type ValidatedRuleSet, versionOf } from './rule-document.js'
import type { ExistingRuleSet, RuleSetChange, RuleSetState } from './rule-storage.js'

interface EditContext {
  readonly ruleSetId: string
  readonly kept: RuleSetState
  readonly edit: Edit
  /** ISO 8601. */
  readonly at: string
}

/** Validates the edit before any access to the storage, because callers are not always type-checked. */
export function checkEdit(edit: Edit | undefined): asserts edit is Edit {
  const { by, ifVersion = 0 } = edit ?? {}
  if (typeof by !== 'string' || by === '')
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      'by must be a non-empty string that names the editor for the history, such as { by: "ann" }.',
    )
  if (!Number.isSafeInteger(ifVersion) || ifVersion < 0)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `ifVersion must be the expected version, or 0 if the rule or rule set must not exist yet; received ${String(ifVersion)}.`,
    )
}

export function* planPutRule(planning: EditContext, document: RuleDocument): Steps<RuleSetChange | undefined> {
  const { ruleSetId, kept, edit } = planning
  const head = existingHead(ruleSetId, kept)
  const before = kept.rules.find(({ id }) => id === document.id)
  checkVersion(`Rule "${document.id}" of "${ruleSetId}"`, before === undefined ? 0 : versionOf(before), edit)
  if (before !== undefined && isSameRule(before, document)) return undefined
  const others = kept.rules.filter(({ id }) => id !== document.id)
  yield* checkRuleInSet(document, others, head)
  const after = stamped(document, before, kept, planning.at)
  const rules = [...others, after]
  return yield* change(planning, { head, rules }, [after], [], {
    action: 'PUT_RULE',
    ruleId: document.id,
    version: versionOf(after),
    before: before ?? null,
    after,
  })
}

export function* planDeleteRule(planning: EditContext, ruleId: string): Steps<RuleSetChange | undefined> {
  const { ruleSetId, kept, edit } = planning
  const head = existingHead(ruleSetId, kept)
  const before = kept.rules.find(({ id }) => id === ruleId)
  checkVersion(`Rule "${ruleId}" of "${ruleSetId}"`, before === undefined ? 0 : versionOf(before), edit)
  if (before === undefined) return undefined
  const rules = kept.rules.filter(({ id }) => id !== ruleId)
  return yield* change(planning, { head, rules }, [], [ruleId], {
    action: 'DELETE_RULE',
    ruleId,
    version: versionOf(before) + 1,
    before,
    after: null,
  })
}

export function* planPutRuleSet(planning: EditContext, wanted: ValidatedRuleSet): Steps<RuleSetChange | undefined> {
  const { ruleSetId, kept, edit, at } = planning
  checkVersion(`Rule set "${ruleSetId}"`, kept.head === undefined ? 0 : kept.version, edit)
  const { id, description, strategy, caseSensitive } = wanted
  const head: RuleSetHead = { id, ...omitUndefined({ description, strategy, caseSensitive }) }
  const byId = new Map<string, RuleDocument>()
  yield* eachInSteps(kept.rules, (rule) => byId.set(rule.id, rule), manyPerStep)
  const put: RuleDocument[] = []
  const rules = yield* mapInSteps(wanted.rules, (rule) => {
    const before = byId.get(rule.id)
    byId.delete(rule.id)
    if (before !== undefined && isSameRule(before, rule)) return before
    const after = stamped(rule, before, kept, at)
    put.push(after)
    return after
  })
  // What is left is not wanted any more.
  const remove = [...byId.keys()]
  const isSame = put.length === 0 && remove.length === 0 && isSameHead(kept.head, head)
  if (isSame) return undefined
  return yield* change(planning, { head, rules }, put, remove, {
    action: 'PUT_SET',
    ruleId: null,
    version: kept.version + 1,
    before: kept.head === undefined ? null : yield* setDocument(kept as ExistingRuleSet),
    after: yield* setDocument({ ...kept, head, version: kept.version + 1, rules }),
  })
}

export function* planDeleteRuleSet(planning: EditContext): Steps<RuleSetChange | undefined> {
  const { ruleSetId, kept, edit } = planning
  checkVersion(`Rule set "${ruleSetId}"`, kept.head === undefined ? 0 : kept.version, edit)
  if (kept.head === undefined) return undefined
  const remove = kept.rules.map(({ id }) => id)
  return yield* change(planning, { rules: [] }, [], remove, {
    action: 'DELETE_SET',
    ruleId: null,
    version: kept.version + 1,
    before: yield* setDocument(kept as ExistingRuleSet),
    after: null,
  })
}

/** Throws if a set with this rule could not be loaded, although the rule by itself is valid. */
function* checkRuleInSet(
  rule: RuleDocument,
  others: readonly RuleDocument[],
  { caseSensitive }: RuleSetHead,
): Steps<void> {
  const mistakes = noIssues()
  if (others.length >= maxRulesPerSet)
    mistakes.add(
      'id',
      `must not exceed the limit of ${maxRulesPerSet} rules in a rule set. Split it into several rule sets`,
    )
  const crowded = yield* crowdedGlob(rule, others, caseSensitive === true)
  if (crowded !== undefined) mistakes.add('path', crowded)
  if (mistakes.count > 0) throw rulesInvalid('The rule', mistakes)
}

/** Also of what was read: a set that is missing here is missing for the caller. */
export function existingHead(ruleSetId: string, { head }: RuleSetState): RuleSetHead {
  if (head !== undefined) return head
  throw new FluxGateError(
    'FLUXGATE_RULE_SET_UNKNOWN',
    `There is no rule set "${ruleSetId}". Correct the id, or create the set first.`,
  )
}

function* change(
  { ruleSetId, kept, edit, at }: EditContext,
  after: Pick<RuleSetState, 'head' | 'rules'>,
  put: readonly RuleDocument[],
  remove: readonly string[],
  entry: Omit<HistoryEntry, 'at' | 'by' | 'ruleSetId'>,
): Steps<RuleSetChange> {
  const gone = new Set(remove)
  let { removedVersion } = kept
  const note = (rule: RuleDocument): void => {
    if (gone.has(rule.id)) removedVersion = Math.max(removedVersion, versionOf(rule) + 1)
  }
  if (gone.size > 0) yield* eachInSteps(kept.rules, note, manyPerStep)
  return {
    ruleSetId,
    from: kept.version,
    after: {
      ...after,
      version: kept.version + 1,
      removedVersion,
      rules: yield* sortInSteps(after.rules, compareDocuments),
    },
    put,
    remove,
    entry: { at, by: edit.by, ruleSetId, ...entry },
  }
}

function stamped(rule: RuleDocument, before: RuleDocument | undefined, kept: RuleSetState, at: string): RuleDocument {
  const version = (before === undefined ? kept.removedVersion : versionOf(before)) + 1
  return { ...rule, createdAt: before?.createdAt ?? at, updatedAt: at, version }
}

function checkVersion(what: string, version: number, { ifVersion }: Edit): void {
  if (ifVersion === undefined || ifVersion === version) return
  const present = version === 0 ? 'does not exist' : `has version ${version}`
  const expected = ifVersion === 0 ? 'but was expected not to exist' : `but version ${ifVersion} was expected`
  throw conflict(`${what} ${present}, ${expected}. Nothing was changed: read it again and repeat the edit.`)
}

export const conflict = (message: string): FluxGateError => new FluxGateError('FLUXGATE_RULES_CONFLICT', message)

const isSameHead = (a: RuleSetHead | undefined, b: RuleSetHead): boolean =>
  a !== undefined && a.description === b.description && a.strategy === b.strategy && a.caseSensitive === b.caseSensitive
