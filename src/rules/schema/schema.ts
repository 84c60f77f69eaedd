/**
 * Rule documents → rules. A document is whatever a file, a store or a caller brought; the result is complete and
 * trusted everywhere else. Reading goes on after a mistake, so that its author sees all of them at once.
 *
 * Written by hand rather than with a schema library: those skip checks across fields as soon as one field is wrong.
 */
import type { Mistake } from '../../core/errors.js'
import { given } from '../../core/omit-undefined.js'
import type { Rule, RuleSet } from '../../core/rule.js'
import { finish, type Steps } from '../../core/scheduling/steps.js'
import { type Fields, isObject, itemsOf, openFields, wrongValue } from '../../validation/fields.js'
import { type Mistakes, noMistakes, quoted, rulesInvalid } from '../../validation/issues.js'
import { identifier, oneOf, text, wholeNumber, yesOrNo } from '../../validation/kinds.js'
import { checkGlobs } from './crowded-globs.js'
import { readLoneRule, readRule } from './rule-schema.js'

export const ruleSetFields: readonly string[] = ['id', 'description', 'strategy', 'caseSensitive', 'rules', 'version']

const strategyKind = oneOf(['all', 'first'] as const)
/** Set by stores; a set may be given back as it was received. */
const versionKind = wholeNumber(0, Number.MAX_SAFE_INTEGER)
/** Checked before any rule is read: what is refused in the end must not cost a long read first. */
export const maxRulesPerSet = 100_000
export const allowedRules = `up to ${maxRulesPerSet} rules in a set; split it into several sets`
const documentForms = '{ ruleSets: [...] }, a list of rule sets, or one rule set'

/** All rule sets of a document, or a FluxGateError that lists every mistake. */
export const parseRuleSets = (document: unknown, source?: string): RuleSet[] => finish(ruleSetSteps(document, source))

/** As `parseRuleSets`, in steps of one rule each. */
export function* ruleSetSteps(document: unknown, source = 'The rules'): Steps<RuleSet[]> {
  const mistakes = noMistakes()
  const ruleSets = yield* readDocument(document, mistakes)
  if (mistakes.count > 0) throw rulesInvalid(source, mistakes)
  return ruleSets
}

const parsed = new WeakMap<object, readonly RuleSet[]>()

/** As `ruleSetSteps`, of a document that nobody changes any more: it is parsed once. */
export function* unchangingRuleSets(document: unknown, source?: string): Steps<readonly RuleSet[]> {
  const known = isObject(document) || Array.isArray(document) ? parsed.get(document) : undefined
  if (known !== undefined) return known
  const ruleSets = Object.freeze(yield* ruleSetSteps(document, source))
  parsed.set(document as object, ruleSets)
  return ruleSets
}

interface CheckedRuleSets {
  readonly ruleSets: RuleSet[]
  readonly errors: readonly Mistake[]
}

/** As `parseRuleSets`, for those who show mistakes rather than stop at them. With mistakes there are no rule sets. */
export const checkRuleSets = (document: unknown): CheckedRuleSets => finish(checkSteps(document))

export function* checkSteps(document: unknown): Steps<CheckedRuleSets> {
  const mistakes = noMistakes()
  const ruleSets = yield* readDocument(document, mistakes)
  return { ruleSets: mistakes.count === 0 ? ruleSets : [], errors: mistakes.kept }
}

/** One rule by itself, as `createLimiter` takes it. `place` is where it stands, for messages. */
export function parseRule(document: unknown, place = ''): Rule {
  const mistakes = noMistakes()
  const rule = readLoneRule(document, place, mistakes)
  if (rule === undefined) throw rulesInvalid(place === '' ? 'The rule' : place, mistakes)
  return rule
}

function* readDocument(document: unknown, mistakes: Mistakes): Steps<RuleSet[]> {
  const sets = itemsOf(document)
  if (sets !== undefined) return yield* readList(sets, 'ruleSets', readRuleSet, 'the document', mistakes)
  if (!isObject(document)) {
    mistakes.add('ruleSets', wrongValue(document, documentForms))
    return []
  }
  const isOneSet = !Object.hasOwn(document, 'ruleSets') && ['id', 'rules'].some((name) => Object.hasOwn(document, name))
  if (isOneSet) return yield* readList([document], 'ruleSets', readRuleSet, 'the document', mistakes)
  const fields = openFields(document, '', ['ruleSets'], documentForms, mistakes)
  const list = itemsOf(fields?.value('ruleSets'))
  if (list !== undefined) return yield* readList(list, 'ruleSets', readRuleSet, 'the document', mistakes)
  mistakes.add('ruleSets', wrongValue(fields?.value('ruleSets'), 'a list of rule sets'))
  return []
}

function* readRuleSet(value: unknown, path: string, mistakes: Mistakes): Steps<RuleSet | undefined> {
  const fields = openFields(value, path, ruleSetFields, 'a rule set: { id, rules }', mistakes)
  if (fields === undefined) return undefined
  const id = fields.require('id', identifier)
  const description = fields.read('description', text)
  const strategy = fields.read('strategy', strategyKind) ?? 'all'
  const caseSensitive = fields.read('caseSensitive', yesOrNo)
  fields.read('version', versionKind)
  const rules = yield* readRules(fields, mistakes)
  // Where a rule is missing because of its own mistakes, places would be those of others.
  if (rules.length === itemsOf(fields.value('rules'))?.length)
    yield* checkGlobs(rules, caseSensitive === true, fields.at('rules'), mistakes)
  return { id: id ?? '', ...given({ description }), strategy, ...given({ caseSensitive }), rules }
}

function* readRules(fields: Fields, mistakes: Mistakes): Steps<Rule[]> {
  const value = fields.value('rules')
  const list = Array.isArray(value) && value.length > maxRulesPerSet ? undefined : itemsOf(value)
  if (list !== undefined) return yield* readList(list, fields.at('rules'), ruleStep, 'the rule set', mistakes)
  fields.wrong('rules', wrongValue(value, Array.isArray(value) ? allowedRules : 'a list of rules'))
  return []
}

function* ruleStep(value: unknown, path: string, mistakes: Mistakes): Steps<Rule | undefined> {
  yield
  return readRule(value, path, mistakes)
}

/** Reads the members of a list; two with the same id are a mistake even if one of them has others. */
function* readList<T>(
  list: readonly unknown[],
  path: string,
  read: (value: unknown, path: string, mistakes: Mistakes) => Steps<T | undefined>,
  unit: string,
  mistakes: Mistakes,
): Steps<T[]> {
  const owners = new Map<string, number>()
  const results: T[] = []
  for (const [index, value] of list.entries()) {
    const result = yield* read(value, `${path}[${index}]`, mistakes)
    if (result !== undefined) results.push(result)
    const id = isObject(value) && Object.hasOwn(value, 'id') ? identifier.parse(value.id) : undefined
    if (id === undefined) continue
    const owner = owners.get(id)
    if (owner === undefined) owners.set(id, index)
    else {
      const place = `${path}[${index}].id`
      mistakes.add(place, `found ${quoted(id)}, a duplicate of ${path}[${owner}]; allowed: ids unique in ${unit}`)
    }
  }
  return results
}
