/**
 * Validates rule documents from files, stores and code and converts them to rules. The rest of the code trusts the result.
 * Validation continues after an issue, so that users see all issues at once.
 */
import type { ValidationIssue } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { candidateIdOf, type Rule, type RuleSet } from '../../core/rule.js'
import { finish, type Steps } from '../../core/scheduling/steps.js'
import { type FieldValues, isObject, itemsOf, openFields } from '../../validation/fields.js'
import { noIssues, quoted, rulesInvalid, type ValidationIssues } from '../../validation/issues.js'
import { described, wrongValue } from '../../validation/kind.js'
import { anyValue, boolean, identifier, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { readRule, readSingleRule } from './rule-schema.js'
import { checkGlobs } from './similar-globs.js'

/** The fields of a rule set. `version` is set by rule stores; it is accepted so that a rule set can be saved as it was read. */
export const ruleSetKinds = {
  id: identifier,
  description: text,
  strategy: described(oneOf(['all', 'first'] as const), 'Default: all.'),
  caseSensitive: described(boolean, 'Match paths case-sensitively. Default: false.'),
  candidateOf: described(
    identifier,
    'For a candidate: the rule set alongside which it is evaluated, without effect. The id is that of the rule set and `.candidate`.',
  ),
  rules: anyValue,
  version: wholeNumber(0, Number.MAX_SAFE_INTEGER),
}

/** Checked before the rules are read, so that an oversized set is rejected quickly. */
export const maxRulesPerSet = 100_000
const documentForms = '{ ruleSets: [...] }, a list of rule sets, or one rule set'

/**
 * Validates a rule document and returns its rule sets.
 *
 * @param document `{ ruleSets: [...] }`, a list of rule sets, or one rule set.
 * @param source Names the document in the error message. Default: `The rules`.
 * @throws FluxGateError `FLUXGATE_RULES_INVALID`, with every issue in `errors`.
 */
export const parseRuleSets = (document: unknown, source?: string): RuleSet[] => finish(ruleSetSteps(document, source))

/** Like `parseRuleSets`, as a generator that yields after each rule. */
export function* ruleSetSteps(document: unknown, source = 'The rules', locate?: LocateIssues): Steps<RuleSet[]> {
  const issues = noIssues()
  const ruleSets = yield* readDocument(document, issues)
  const { kept, count } = issues
  if (count > 0) throw rulesInvalid(source, { kept: locate === undefined ? kept : yield* locate(kept), count })
  return ruleSets
}

/** Adds the positions in the text of a document to its issues. */
export type LocateIssues = (issues: readonly ValidationIssue[]) => Steps<readonly ValidationIssue[]>

const parsed = new WeakMap<object, readonly RuleSet[]>()

/** Like `ruleSetSteps`, for an immutable document: the result is cached. */
export function* immutableRuleSets(
  document: unknown,
  source?: string,
  locate?: LocateIssues,
): Steps<readonly RuleSet[]> {
  const known = isObject(document) || Array.isArray(document) ? parsed.get(document) : undefined
  if (known !== undefined) return known
  const ruleSets = Object.freeze(yield* ruleSetSteps(document, source, locate))
  parsed.set(document as object, ruleSets)
  return ruleSets
}

interface CheckedRuleSets {
  readonly ruleSets: RuleSet[]
  readonly errors: readonly ValidationIssue[]
}

/** Like `parseRuleSets`, but returns the issues instead of throwing. `ruleSets` is empty if there are any. */
export const checkRuleSets = (document: unknown): CheckedRuleSets => finish(checkSteps(document))

export function* checkSteps(document: unknown): Steps<CheckedRuleSets> {
  const issues = noIssues()
  const ruleSets = yield* readDocument(document, issues)
  return { ruleSets: issues.count === 0 ? ruleSets : [], errors: issues.kept }
}

/** Validates a rule outside a rule set, as `createLimiter` takes it. `place` is its path in messages. */
export function parseRule(document: unknown, place = ''): Rule {
  const issues = noIssues()
  const rule = readSingleRule(document, place, issues)
  if (rule === undefined) throw rulesInvalid(place === '' ? 'The rule' : place, issues)
  return rule
}

function* readDocument(document: unknown, issues: ValidationIssues): Steps<RuleSet[]> {
  const sets = itemsOf(document)
  if (sets !== undefined) return yield* readList(sets, 'ruleSets', readRuleSet, 'the document', issues)
  if (!isObject(document)) {
    issues.add('ruleSets', wrongValue(document, documentForms))
    return []
  }
  const isOneSet = !Object.hasOwn(document, 'ruleSets') && ['id', 'rules'].some((name) => Object.hasOwn(document, name))
  if (isOneSet) return yield* readList([document], 'ruleSets', readRuleSet, 'the document', issues)
  const fields = openFields(document, '', { ruleSets: anyValue }, documentForms, issues)
  const list = itemsOf(fields?.value('ruleSets'))
  if (list !== undefined) return yield* readList(list, 'ruleSets', readRuleSet, 'the document', issues)
  issues.add('ruleSets', wrongValue(fields?.value('ruleSets'), 'a list of rule sets'))
  return []
}

function* readRuleSet(value: unknown, path: string, issues: ValidationIssues): Steps<RuleSet | undefined> {
  const fields = openFields(value, path, ruleSetKinds, 'a rule set: { id, rules }', issues)
  if (fields === undefined) return undefined
  const id = fields.require('id')
  const description = fields.read('description')
  const strategy = fields.read('strategy') ?? 'all'
  const caseSensitive = fields.read('caseSensitive')
  const candidateOf = fields.read('candidateOf')
  if (candidateOf !== undefined && id !== undefined && id !== candidateIdOf(candidateOf))
    fields.report(
      'id',
      `must be ${quoted(candidateIdOf(candidateOf))}, because the rule set is a candidate of ${quoted(candidateOf)}; received ${quoted(id)}`,
    )
  fields.read('version')
  const rules = yield* readRules(fields, issues)
  // If an invalid rule is missing from `rules`, the indexes would not match the document.
  if (rules.length === itemsOf(fields.value('rules'))?.length)
    yield* checkGlobs(rules, caseSensitive === true, fields.at('rules'), issues)
  return {
    id: id ?? '',
    ...omitUndefined({ description }),
    strategy,
    ...omitUndefined({ caseSensitive, candidateOf }),
    rules,
  }
}

function* readRules(fields: FieldValues, issues: ValidationIssues): Steps<Rule[]> {
  const value = fields.value('rules')
  const list = Array.isArray(value) && value.length > maxRulesPerSet ? undefined : itemsOf(value)
  if (list !== undefined) return yield* readList(list, fields.at('rules'), ruleStep, 'the rule set', issues)
  fields.report(
    'rules',
    Array.isArray(value)
      ? `${wrongValue(value, `a list of at most ${maxRulesPerSet} rules`)}. Split it into several rule sets`
      : wrongValue(value, 'a list of rules'),
  )
  return []
}

function* ruleStep(value: unknown, path: string, issues: ValidationIssues): Steps<Rule | undefined> {
  yield
  return readRule(value, path, issues)
}

/** Reads the items of a list. Duplicate ids are reported even if one of the items is invalid. */
function* readList<T>(
  list: readonly unknown[],
  path: string,
  read: (value: unknown, path: string, issues: ValidationIssues) => Steps<T | undefined>,
  unit: string,
  issues: ValidationIssues,
): Steps<T[]> {
  const owners = new Map<string, number>()
  const results: T[] = []
  for (const [index, value] of list.entries()) {
    const result = yield* read(value, `${path}[${index}]`, issues)
    if (result !== undefined) results.push(result)
    const id = isObject(value) && Object.hasOwn(value, 'id') ? identifier.parse(value.id) : undefined
    if (id === undefined) continue
    const owner = owners.get(id)
    if (owner === undefined) owners.set(id, index)
    else {
      const place = `${path}[${index}].id`
      issues.add(place, `must be unique in ${unit}; received ${quoted(id)}, which ${path}[${owner}] already has`)
    }
  }
  return results
}
