import type { RequestContext } from '../request-context.js'
import type { Rule, RuleSet } from '../rule.js'
import { finish, type Steps } from '../scheduling/steps.js'
import { lookUp } from './condition-index.js'
import { interpretPath } from './paths/normalise-path.js'
import { pathTreeSteps } from './paths/pattern-tree.js'
import { capturedFrom } from './paths/tree-search.js'
import { isForEveryRequest, rankedRules, readsPath } from './rank-rules.js'
import { compileLeaves, type Leaf, type Match, matchOf, none, type RuleMatches } from './rule-leaf.js'

export interface RuleMatcher {
  /** The normalised path of a request, or all interpretations if servers interpret it differently. */
  interpretPath(context: RequestContext): string | readonly string[]
  /**
   * All enabled rules that apply to a request with this path (one of `interpretPath`), by descending priority, ties by id.
   * The array is valid until the next call.
   */
  match(context: RequestContext, path: string): readonly Match[]
}

/** Compiles a rule set. The cost of a match then depends on the rules that match, not on the number of rules. */
export const compileRules = (ruleSet: RuleSet): RuleMatcher =>
  finish(matcherSteps(finish(rankedRules(ruleSet)), ruleSet.caseSensitive === true))

/** Like `compileRules`, for rules in order of rank. */
export function* matcherSteps(rules: readonly Rule[], caseSensitive: boolean): Steps<RuleMatcher> {
  const pathOf = readsPath(rules) ? ({ path }: RequestContext) => interpretPath(path, caseSensitive) : () => '/'
  if (rules.every(isForEveryRequest)) {
    const all = rules.map(matchOf)
    return { interpretPath: pathOf, match: () => all }
  }
  const tree = yield* pathTreeSteps(yield* compileLeaves(rules, caseSensitive))
  const single: Match[] = []
  return {
    interpretPath: pathOf,
    match(context, path) {
      const method = upperCase(context.method)
      const count = tree.find(path)
      const constant = count === 1 ? constantMatches(tree.found[0] as Leaf, method, single) : undefined
      if (constant !== undefined) return constant
      const found: RuleMatches[] = []
      for (let i = 0; i < count; i++) addRuleMatches(tree.found[i] as Leaf, method, context, found)
      const [first] = found
      if (first?.constant && found.length === 1) return first.constant
      const matches: Match[] = []
      for (const rules of found) addMatches(rules, context, path, matches)
      return inOrder(matches)
    },
  }
}

/** Most methods are already upper case, and checking is faster than converting. */
function upperCase(method: string | null | undefined): string | undefined {
  if (method === 'GET' || method === 'POST') return method
  if (method === undefined || method === null) return undefined
  for (let i = 0; i < method.length; i++) if (method.charCodeAt(i) > lastCapital) return method.toUpperCase()
  return method
}

const lastCapital = 0x5a

/**
 * Sorts matches by rank and removes duplicates: a request with a list of values may find a rule under several of them.
 * Requests usually match few rules, for which an insertion sort is fastest.
 */
function inOrder(matches: Match[]): readonly Match[] {
  if (matches.length > 16) matches.sort((a, b) => a.rank - b.rank)
  let repeated = false
  for (let i = 1; i < matches.length; i++) {
    const match = matches[i] as Match
    let index = i
    for (; index > 0 && (matches[index - 1] as Match).rank > match.rank; index--) {
      matches[index] = matches[index - 1] as Match
    }
    matches[index] = match
    if (index > 0 && (matches[index - 1] as Match).rank === match.rank) repeated = true
  }
  return repeated ? matches.filter((match, i) => match.rank !== matches[i - 1]?.rank) : matches
}

/** Adds the rules of a leaf, and of the leaves after it, that apply to the method and the indexed fields of a request. */
function addRuleMatches(leaf: Leaf, method: string | undefined, context: RequestContext, found: RuleMatches[]): void {
  for (let one: Leaf | undefined = leaf; one; one = one.next) {
    if (one.methods && !includesMethod(one.methods, method)) continue
    if (one.constant !== none) found.push(one)
    if (one.fieldIndexes) for (const fieldIndex of one.fieldIndexes) lookUp(fieldIndex, context, found)
  }
}

/**
 * The matches of a leaf, if they do not depend on the request beyond its method; otherwise undefined. A single match is
 * returned in the reused array `single`, which is in the CPU cache, while an array of the leaf would not be.
 */
function constantMatches(leaf: Leaf, method: string | undefined, single: Match[]): readonly Match[] | undefined {
  let matches: readonly Match[] = none
  for (let one: Leaf | undefined = leaf; one; one = one.next) {
    if (one.fieldIndexes) return undefined
    if (one.methods && !includesMethod(one.methods, method)) continue
    if (matches !== none) return undefined
    if (one.only !== undefined) {
      single[0] = one.only
      matches = single
    } else if (one.constant === undefined) return undefined
    else matches = one.constant
  }
  return matches
}

/** Rules have few methods, so a linear search is faster than a hash lookup. */
function includesMethod(methods: readonly string[], method: string | undefined): boolean {
  for (let i = 0; i < methods.length; i++) if (methods[i] === method) return true
  return false
}

/** Adds the matches whose conditions hold. */
function addMatches(found: RuleMatches, context: RequestContext, path: string, matches: Match[]): void {
  if (found.constant) {
    for (const match of found.constant) matches.push(match)
    return
  }
  for (const { match, captures, holds } of found.candidates) {
    const pathVariables = captures && capturedFrom(captures, path)
    if (holds && !holds(context, pathVariables)) continue
    matches.push(pathVariables ? { rule: match.rule, rank: match.rank, pathVariables } : match)
  }
}
