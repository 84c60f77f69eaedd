/**
 * Plans edits: pure functions from the stored state and the requested state to the change to commit, or to `undefined` if
 * nothing changes. Versions never decrease, not even after a removal, so a version always identifies the same content.
 */

import type { Edit, HistoryEntry, RuleDocument, RuleSetHead } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { eachInSteps, manyPerStep, mapInSteps, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import { noIssues, rulesInvalid } from '../../validation/issues.js'
import { maxRulesPerSet } from '../schema/parse-rules.js'
import { similarGlobsIssue } from '../schema/similar-globs.js'
import { compareDocuments, isSameRule, setDocument, type ValidatedRuleSet, versionOf } from './rule-document.js'
import type { ExistingRuleSet, RuleSetChange, RuleSetState } from './rule-storage.js'

export interface EditContext {
  readonly ruleSetId: string
  readonly stored: RuleSetState
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

export function* planPutRule(context: EditContext, document: RuleDocument): Steps<RuleSetChange | undefined> {
  const { ruleSetId, stored, edit } = context
  const head = existingHead(ruleSetId, stored)
  const before = stored.rules.find(({ id }) => id === document.id)
  checkVersion(`Rule "${document.id}" of "${ruleSetId}"`, before === undefined ? 0 : versionOf(before), edit)
  if (before !== undefined && isSameRule(before, document)) return undefined
  const others = stored.rules.filter(({ id }) => id !== document.id)
  yield* checkRuleInSet(document, others, head)
  const after = stamped(document, before, stored, context.at)
  const rules = [...others, after]
  return yield* change(context, { head, rules }, [after], [], {
    action: 'PUT_RULE',
    ruleId: document.id,
    version: versionOf(after),
    before: before ?? null,
    after,
  })
}

export function* planDeleteRule(context: EditContext, ruleId: string): Steps<RuleSetChange | undefined> {
  const { ruleSetId, stored, edit } = context
  const head = existingHead(ruleSetId, stored)
  const before = stored.rules.find(({ id }) => id === ruleId)
  checkVersion(`Rule "${ruleId}" of "${ruleSetId}"`, before === undefined ? 0 : versionOf(before), edit)
  if (before === undefined) return undefined
  const rules = stored.rules.filter(({ id }) => id !== ruleId)
  return yield* change(context, { head, rules }, [], [ruleId], {
    action: 'DELETE_RULE',
    ruleId,
    version: versionOf(before) + 1,
    before,
    after: null,
  })
}

export function* planPutRuleSet(context: EditContext, requested: ValidatedRuleSet): Steps<RuleSetChange | undefined> {
  const { ruleSetId, stored, edit, at } = context
  checkVersion(`Rule set "${ruleSetId}"`, stored.head === undefined ? 0 : stored.version, edit)
  const { id, description, strategy, caseSensitive, candidateOf } = requested
  const head: RuleSetHead = { id, ...omitUndefined({ description, strategy, caseSensitive, candidateOf }) }
  const byId = new Map<string, RuleDocument>()
  yield* eachInSteps(stored.rules, (rule) => byId.set(rule.id, rule), manyPerStep)
  const put: RuleDocument[] = []
  const rules = yield* mapInSteps(requested.rules, (rule) => {
    const before = byId.get(rule.id)
    byId.delete(rule.id)
    if (before !== undefined && isSameRule(before, rule)) return before
    const after = stamped(rule, before, stored, at)
    put.push(after)
    return after
  })
  // The remaining rules are not part of the new rule set.
  const remove = [...byId.keys()]
  const isSame = put.length === 0 && remove.length === 0 && isSameHead(stored.head, head)
  if (isSame) return undefined
  return yield* change(context, { head, rules }, put, remove, {
    action: 'PUT_SET',
    ruleId: null,
    version: stored.version + 1,
    before: stored.head === undefined ? null : yield* setDocument(stored as ExistingRuleSet),
    after: yield* setDocument({ ...stored, head, version: stored.version + 1, rules }),
  })
}

export function* planDeleteRuleSet(context: EditContext): Steps<RuleSetChange | undefined> {
  const { ruleSetId, stored, edit } = context
  checkVersion(`Rule set "${ruleSetId}"`, stored.head === undefined ? 0 : stored.version, edit)
  if (stored.head === undefined) return undefined
  const remove = stored.rules.map(({ id }) => id)
  return yield* change(context, { rules: [] }, [], remove, {
    action: 'DELETE_SET',
    ruleId: null,
    version: stored.version + 1,
    before: yield* setDocument(stored as ExistingRuleSet),
    after: null,
  })
}

/** Throws if a set with this rule could not be loaded, although the rule by itself is valid. */
function* checkRuleInSet(
  rule: RuleDocument,
  others: readonly RuleDocument[],
  { caseSensitive }: RuleSetHead,
): Steps<void> {
  const issues = noIssues()
  if (others.length >= maxRulesPerSet)
    issues.add(
      'id',
      `must not exceed the limit of ${maxRulesPerSet} rules in a rule set. Split it into several rule sets`,
    )
  const message = yield* similarGlobsIssue(rule, others, caseSensitive === true)
  if (message !== undefined) issues.add('path', message)
  if (issues.count > 0) throw rulesInvalid('The rule', issues)
}

/** Throws `FLUXGATE_RULE_SET_UNKNOWN` if the rule set does not exist. */
export function existingHead(ruleSetId: string, { head }: RuleSetState): RuleSetHead {
  if (head !== undefined) return head
  throw new FluxGateError(
    'FLUXGATE_RULE_SET_UNKNOWN',
    `There is no rule set "${ruleSetId}". Correct the id, or create the set first.`,
  )
}

function* change(
  { ruleSetId, stored, edit, at }: EditContext,
  after: Pick<RuleSetState, 'head' | 'rules'>,
  put: readonly RuleDocument[],
  remove: readonly string[],
  entry: Omit<HistoryEntry, 'at' | 'by' | 'ruleSetId'>,
): Steps<RuleSetChange> {
  const removed = new Set(remove)
  let { removedVersion } = stored
  const note = (rule: RuleDocument): void => {
    if (removed.has(rule.id)) removedVersion = Math.max(removedVersion, versionOf(rule) + 1)
  }
  if (removed.size > 0) yield* eachInSteps(stored.rules, note, manyPerStep)
  return {
    ruleSetId,
    from: stored.version,
    after: {
      ...after,
      version: stored.version + 1,
      removedVersion,
      rules: yield* sortInSteps(after.rules, compareDocuments),
    },
    put,
    remove,
    entry: { at, by: edit.by, ruleSetId, ...entry },
  }
}

function stamped(rule: RuleDocument, before: RuleDocument | undefined, stored: RuleSetState, at: string): RuleDocument {
  const version = (before === undefined ? stored.removedVersion : versionOf(before)) + 1
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
  a !== undefined &&
  (['description', 'strategy', 'caseSensitive', 'candidateOf'] as const).every((name) => a[name] === b[name])
