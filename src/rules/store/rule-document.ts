/** Rules as stored documents: the fields of the author, and those that the store adds. */
import type { ValidationIssue } from '../../core/errors.js'
import { copyWritten, isWrittenAlike } from '../../core/json/written-json.js'
import type { RuleSet } from '../../core/rule.js'
import type { RuleDocument, RuleSetDocument } from '../../core/rule-store.js'
import { mapInSteps, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import { noIssues, rulesInvalid } from '../../validation/issues.js'
import type { RuleRequirement } from '../requirement.js'
import { copyJson } from '../schema/free-json.js'
import { readRule } from '../schema/rule-schema.js'
import { ruleSetSteps } from '../schema/schema.js'
import type { ExistingRuleSet, RuleSearch } from './rule-storage.js'

/** Fields that the store sets. Values in an edit are ignored. */
export const storeFields = ['createdAt', 'updatedAt', 'version'] as const

/** Fields that a search for `q` covers. */
export const searchedFields = ['id', 'name', 'description', 'path'] as const

/** Validates and copies the rule of an edit, without the fields that only the store may set. */
export function validateRule(
  document: unknown,
  required: Iterable<RuleRequirement> = [],
  ruleSetId = '',
): RuleDocument {
  const mistakes = noIssues()
  const rule = readRule(document, '', mistakes)
  const copy = mistakes.count === 0 ? copyJson(document, '', mistakes) : undefined
  if (rule !== undefined)
    for (const { path, message } of requirementIssues([{ id: ruleSetId, strategy: 'all', rules: [rule] }], required))
      mistakes.add(path.replace('ruleSets[0].rules[0].', ''), message)
  if (mistakes.count > 0) throw rulesInvalid('The rule', mistakes)
  return withoutStoreFields(copy as RuleDocument)
}

const requirementIssues = (
  ruleSets: readonly RuleSet[],
  required: Iterable<RuleRequirement>,
): readonly ValidationIssue[] => [...required].flatMap((check) => check(ruleSets))

export interface ValidatedRuleSet {
  readonly id: string
  readonly description?: string
  readonly strategy?: 'all' | 'first'
  readonly caseSensitive?: boolean
  readonly rules: readonly RuleDocument[]
}

/** Like `checkedRule`, for a rule set. */
export function* validateRuleSet(document: unknown, required: Iterable<RuleRequirement> = []): Steps<ValidatedRuleSet> {
  const ruleSets = yield* ruleSetSteps([document], 'The rule set')
  const mistakes = noIssues()
  for (const { path, message } of requirementIssues(ruleSets, required)) mistakes.add(path, message)
  return yield* copyRuleSet(document, mistakes)
}

/** The same for a set that was validated before. */
export function* copyRuleSet(document: unknown, mistakes = noIssues()): Steps<ValidatedRuleSet> {
  const { rules, ...head } = document as ValidatedRuleSet
  // Copied one by one, because the size limit applies to a rule, not to the rule set.
  const copies = yield* mapInSteps(rules, (rule, index) => {
    const copy = copyJson(rule, `ruleSets[0].rules[${index}]`, mistakes)
    return mistakes.count > 0 ? (rule as RuleDocument) : withoutStoreFields(copy as RuleDocument)
  })
  if (mistakes.count > 0) throw rulesInvalid('The rule set', mistakes)
  return { ...head, rules: copies }
}

export function withoutStoreFields(document: RuleDocument): RuleDocument {
  const { createdAt: _createdAt, updatedAt: _updatedAt, version: _version, ...own } = document
  return own as RuleDocument
}

/** Documents written by other programs may have no version. */
export const versionOf = (document: RuleDocument): number =>
  typeof document.version === 'number' ? document.version : 1

export const priorityOf = (document: RuleDocument): number =>
  typeof document.priority === 'number' ? document.priority : 0

export const isEnabled = (document: RuleDocument): boolean => document.enabled !== false

/** Orders by priority, highest first, then by id, independent of the locale. */
export function compareDocuments(a: RuleDocument, b: RuleDocument): number {
  return priorityOf(b) - priorityOf(a) || (a.id < b.id ? -1 : Number(a.id > b.id))
}

/** Compares two rules without the store fields. The order of a rule's fields is ignored; the order inside them and the source text of `attributes` are not. */
export const isSameRule = (a: RuleDocument, b: RuleDocument): boolean => isWrittenAlike(ownFields(a), ownFields(b))

const ownFields = (document: RuleDocument): unknown =>
  Object.entries(withoutStoreFields(document)).sort(([a], [b]) => (a < b ? -1 : 1))

export function matchesSearch(document: RuleDocument, { q, enabled, after }: Omit<RuleSearch, 'limit'>): boolean {
  if (enabled !== undefined && isEnabled(document) !== enabled) return false
  if (after !== undefined && compareDocuments(document, { ...after }) <= 0) return false
  return (
    q === undefined ||
    searchedFields.some((name) =>
      String(document[name] ?? '')
        .toLowerCase()
        .includes(q),
    )
  )
}

export function* setDocument({ head, version, rules }: ExistingRuleSet): Steps<RuleSetDocument> {
  return { ...head, version, rules: yield* sortInSteps(rules, compareDocuments) }
}

/** Like `setDocument`, as a copy that callers may modify. */
export function* copyOfSetDocument(kept: ExistingRuleSet): Steps<RuleSetDocument> {
  const { rules, ...head } = yield* setDocument(kept)
  return { ...head, rules: yield* mapInSteps(rules, copyWritten) }
}

/** All rule sets in a stable order, so that unchanged rules give an equal document. */
export function* documentOfSets(sets: readonly ExistingRuleSet[]): Steps<unknown> {
  const documents: RuleSetDocument[] = []
  for (const kept of sets) documents.push(yield* setDocument(kept))
  return documents.sort((a, b) => (a.id < b.id ? -1 : 1))
}
