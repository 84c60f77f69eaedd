/** Rules as documents: what the owner wrote, and what the store adds to it. */
import type { Mistake } from '../../core/errors.js'
import { copyWritten, isWrittenAlike } from '../../core/json/written-json.js'
import type { RuleSet } from '../../core/rule.js'
import type { RuleDocument, RuleSetDocument } from '../../core/rule-store.js'
import { mapInSteps, type Steps, sortInSteps } from '../../core/scheduling/steps.js'
import { noMistakes, rulesInvalid } from '../../validation/issues.js'
import type { Requirement } from '../requirement.js'
import { copyJson } from '../schema/free-json.js'
import { readRule } from '../schema/rule-schema.js'
import { ruleSetSteps } from '../schema/schema.js'
import type { KeptRuleSet, RuleSearch } from './rule-storage.js'

/** What the store sets, whatever an editor says about it. */
export const storeFields = ['createdAt', 'updatedAt', 'version'] as const

/** Where `q` is looked for. */
export const searchedFields = ['id', 'name', 'description', 'path'] as const

/** A rule that an editor brought: checked, no longer shared with the caller, and without what only the store may set. */
export function checkedRule(document: unknown, required: Iterable<Requirement> = [], ruleSetId = ''): RuleDocument {
  const mistakes = noMistakes()
  const rule = readRule(document, '', mistakes)
  const copy = mistakes.count === 0 ? copyJson(document, '', mistakes) : undefined
  if (rule !== undefined)
    for (const { path, message } of unmet([{ id: ruleSetId, strategy: 'all', rules: [rule] }], required))
      mistakes.add(path.replace('ruleSets[0].rules[0].', ''), message)
  if (mistakes.count > 0) throw rulesInvalid('The rule', mistakes)
  return withoutStoreFields(copy as RuleDocument)
}

const unmet = (ruleSets: readonly RuleSet[], required: Iterable<Requirement>): readonly Mistake[] =>
  [...required].flatMap((check) => check(ruleSets))

export interface CheckedRuleSet {
  readonly id: string
  readonly description?: string
  readonly strategy?: 'all' | 'first'
  readonly caseSensitive?: boolean
  readonly rules: readonly RuleDocument[]
}

/** The same for a whole set. */
export function* checkedRuleSet(document: unknown, required: Iterable<Requirement> = []): Steps<CheckedRuleSet> {
  const ruleSets = yield* ruleSetSteps([document], 'The rule set')
  const mistakes = noMistakes()
  for (const { path, message } of unmet(ruleSets, required)) mistakes.add(path, message)
  return yield* copiedRuleSet(document, mistakes)
}

/** The same for a set that was validated before. */
export function* copiedRuleSet(document: unknown, mistakes = noMistakes()): Steps<CheckedRuleSet> {
  const { rules, ...head } = document as CheckedRuleSet
  // One by one: what is bounded is a rule, and not how many there are.
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

/** Documents that were written by others need not say it. */
export const versionOf = (document: RuleDocument): number =>
  typeof document.version === 'number' ? document.version : 1

export const priorityOf = (document: RuleDocument): number =>
  typeof document.priority === 'number' ? document.priority : 0

export const isEnabled = (document: RuleDocument): boolean => document.enabled !== false

/** By priority, highest first; ties by id, whatever the machine's language. */
export function compareDocuments(a: RuleDocument, b: RuleDocument): number {
  return priorityOf(b) - priorityOf(a) || (a.id < b.id ? -1 : Number(a.id > b.id))
}

/** Whether an owner would see no difference. The order of a rule's own fields is none; within them it may matter, and so does how `attributes` are written. */
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

export function* setDocument({ head, version, rules }: KeptRuleSet): Steps<RuleSetDocument> {
  return { ...head, version, rules: yield* sortInSteps(rules, compareDocuments) }
}

/** The same for a caller, who may change it. */
export function* copiedSet(kept: KeptRuleSet): Steps<RuleSetDocument> {
  const { rules, ...head } = yield* setDocument(kept)
  return { ...head, rules: yield* mapInSteps(rules, copyWritten) }
}

/** All that rules say, always in the same order: what did not change must not look as if it had. */
export function* wholeDocument(sets: readonly KeptRuleSet[]): Steps<unknown> {
  const documents: RuleSetDocument[] = []
  for (const kept of sets) documents.push(yield* setDocument(kept))
  return documents.sort((a, b) => (a.id < b.id ? -1 : 1))
}
