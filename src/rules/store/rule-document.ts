/** Rules as stored documents: the fields of the author, and those that the store adds. */

import type { RuleDocument, RuleSetDocument } from '../../core/contracts/rule-store.js'
import type { ValidationIssue } from '../../core/errors.js'
import { copyWithSourceText, hasSameSourceText } from '../../core/json/source-text.js'
import type { RuleSet } from '../../core/rule.js'
import { mapInSteps, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import { noIssues, rulesInvalid } from '../../validation/issues.js'
import type { RuleRequirement } from '../check-provided-rules.js'
import { copyJson } from '../schema/fields/json-value.js'
import { ruleSetSteps } from '../schema/parse-rules.js'
import { readRule } from '../schema/rule-schema.js'
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
  const issues = noIssues()
  const rule = readRule(document, '', issues)
  const copy = issues.count === 0 ? copyJson(document, '', issues) : undefined
  if (rule !== undefined)
    for (const { path, message } of requirementIssues([{ id: ruleSetId, strategy: 'all', rules: [rule] }], required))
      issues.add(path.replace('ruleSets[0].rules[0].', ''), message)
  if (issues.count > 0) throw rulesInvalid('The rule', issues)
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
  readonly candidateOf?: string
  readonly rules: readonly RuleDocument[]
}

/** Like `validateRule`, for a rule set. */
export function* validateRuleSet(document: unknown, required: Iterable<RuleRequirement> = []): Steps<ValidatedRuleSet> {
  const ruleSets = yield* ruleSetSteps([document], 'The rule set')
  const issues = noIssues()
  for (const { path, message } of requirementIssues(ruleSets, required)) issues.add(path, message)
  return yield* copyRuleSet(document, issues)
}

/** Copies a rule set that is already validated, without the fields that only the store may set. */
export function* copyRuleSet(document: unknown, issues = noIssues()): Steps<ValidatedRuleSet> {
  const { rules, ...head } = document as ValidatedRuleSet
  // Copied one by one, because the size limit applies to a rule, not to the rule set.
  const copies = yield* mapInSteps(rules, (rule, index) => {
    const copy = copyJson(rule, `ruleSets[0].rules[${index}]`, issues)
    return issues.count > 0 ? (rule as RuleDocument) : withoutStoreFields(copy as RuleDocument)
  })
  if (issues.count > 0) throw rulesInvalid('The rule set', issues)
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
export const isSameRule = (a: RuleDocument, b: RuleDocument): boolean => hasSameSourceText(ownFields(a), ownFields(b))

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
export function* copyOfSetDocument(stored: ExistingRuleSet): Steps<RuleSetDocument> {
  const { rules, ...head } = yield* setDocument(stored)
  return { ...head, rules: yield* mapInSteps(rules, copyWithSourceText) }
}

/** All rule sets in a stable order, so that unchanged rules give an equal document. */
export function* documentOfSets(sets: readonly ExistingRuleSet[]): Steps<unknown> {
  const documents: RuleSetDocument[] = []
  for (const stored of sets) documents.push(yield* setDocument(stored))
  return documents.sort((a, b) => (a.id < b.id ? -1 : 1))
}
