/**
 * Rule documents → rules. A document is whatever a file, a store or a caller brought; the result is complete and
 * trusted everywhere else. Reading goes on after a mistake, so that its author sees all of them at once.
 *
 * Written by hand rather than with a schema library: those skip checks across fields as soon as one field is wrong.
 */
import type { Mistake } from '../core/errors.js'
import { given } from '../core/given.js'
import type { Rule, RuleSet } from '../core/rule.js'
import { isObject, itemsOf, openFields, wrongValue } from './fields.js'
import { identifier, oneOf, text, wholeNumber, yesOrNo } from './kinds.js'
import { type Mistakes, noMistakes, quoted, rulesInvalid } from './mistakes.js'
import { readLoneRule, readRule } from './rule-schema.js'

export const ruleSetFields: readonly string[] = ['id', 'description', 'strategy', 'caseSensitive', 'rules', 'version']

const strategyKind = oneOf(['all', 'first'] as const)
/** Set by stores; a set may be given back as it was received. */
const versionKind = wholeNumber(0, Number.MAX_SAFE_INTEGER)
const documentForms = '{ ruleSets: [...] }, a list of rule sets, or one rule set'

/** All rule sets of a document, or a FluxGateError that lists every mistake. */
export function parseRuleSets(document: unknown, source = 'The rules'): RuleSet[] {
  const mistakes = noMistakes()
  const ruleSets = readDocument(document, mistakes)
  if (mistakes.count > 0) throw rulesInvalid(source, mistakes)
  return ruleSets
}

/** As `parseRuleSets`, for those who show mistakes rather than stop at them. With mistakes there are no rule sets. */
export function checkRuleSets(document: unknown): { ruleSets: RuleSet[]; errors: readonly Mistake[] } {
  const mistakes = noMistakes()
  const ruleSets = readDocument(document, mistakes)
  return { ruleSets: mistakes.count === 0 ? ruleSets : [], errors: mistakes.kept }
}

/** One rule by itself, as `createLimiter` takes it. `place` is where it stands, for messages. */
export function parseRule(document: unknown, place = ''): Rule {
  const mistakes = noMistakes()
  const rule = readLoneRule(document, place, mistakes)
  if (rule === undefined) throw rulesInvalid(place === '' ? 'The rule' : place, mistakes)
  return rule
}

function readDocument(document: unknown, mistakes: Mistakes): RuleSet[] {
  const sets = itemsOf(document)
  if (sets !== undefined) return readList(sets, 'ruleSets', readRuleSet, 'the document', mistakes)
  if (!isObject(document)) {
    mistakes.add('ruleSets', wrongValue(document, documentForms))
    return []
  }
  const isOneSet = !Object.hasOwn(document, 'ruleSets') && ['id', 'rules'].some((name) => Object.hasOwn(document, name))
  if (isOneSet) return readList([document], 'ruleSets', readRuleSet, 'the document', mistakes)
  const fields = openFields(document, '', ['ruleSets'], documentForms, mistakes)
  const list = itemsOf(fields?.value('ruleSets'))
  if (list !== undefined) return readList(list, 'ruleSets', readRuleSet, 'the document', mistakes)
  mistakes.add('ruleSets', wrongValue(fields?.value('ruleSets'), 'a list of rule sets'))
  return []
}

function readRuleSet(value: unknown, path: string, mistakes: Mistakes): RuleSet | undefined {
  const fields = openFields(value, path, ruleSetFields, 'a rule set: { id, rules }', mistakes)
  if (fields === undefined) return undefined
  const id = fields.require('id', identifier)
  const description = fields.read('description', text)
  const strategy = fields.read('strategy', strategyKind) ?? 'all'
  const caseSensitive = fields.read('caseSensitive', yesOrNo)
  fields.read('version', versionKind)
  const list = itemsOf(fields.value('rules'))
  if (list === undefined) fields.wrong('rules', wrongValue(fields.value('rules'), 'a list of rules'))
  const rules = readList(list ?? [], fields.at('rules'), readRule, 'the rule set', mistakes)
  return { id: id ?? '', ...given({ description }), strategy, ...given({ caseSensitive }), rules }
}

/** Reads the members of a list; two with the same id are a mistake even if one of them has others. */
function readList<T>(
  list: readonly unknown[],
  path: string,
  read: (value: unknown, path: string, mistakes: Mistakes) => T | undefined,
  unit: string,
  mistakes: Mistakes,
): T[] {
  const owners = new Map<string, number>()
  const results: T[] = []
  for (const [index, value] of list.entries()) {
    const result = read(value, `${path}[${index}]`, mistakes)
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
