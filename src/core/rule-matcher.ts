import { compileConditions, type Predicate } from './condition.js'
import { type Candidates, indexConditions } from './condition-index.js'
import { normalisePath } from './normalise-path.js'
import { compilePathPattern, type PathPattern, type PathVariables } from './path-pattern.js'
import { createPathTree } from './path-tree.js'
import type { RequestContext } from './request-context.js'
import type { Rule, RuleSet } from './rule.js'

/** A rule that applies to a request, and what its `{name}` segments stand for there. */
export interface Match {
  readonly rule: Rule
  readonly pathVariables: PathVariables | undefined
}

export interface RuleMatcher {
  /** Every enabled rule that applies: the highest priority first, ties by id. */
  match(context: RequestContext): readonly Match[]
}

/** Compiles a rule set once; each request then pays for the rules that match it and not for the others. */
export function compileRules(ruleSet: RuleSet): RuleMatcher {
  const byShape = new Map<string, Candidate[]>()
  for (const rule of ruleSet.rules.filter(({ enabled }) => enabled).sort(compareRules)) {
    const candidate = compileRule(rule)
    const alike = byShape.get(candidate.pattern.shape)
    if (alike) alike.push(candidate)
    else byShape.set(candidate.pattern.shape, [candidate])
  }
  const tree = createPathTree<Leaf>()
  for (const alike of byShape.values()) tree.set((alike[0] as Candidate).pattern.segments, compileLeaf(alike))

  return {
    match(context) {
      const path = normalisePath(context.path)
      const leaves = tree.find(path)
      const only = leaves.length === 1 ? choicesOf(leaves[0] as Leaf, context).ready : undefined
      if (only) return only
      const matches: Match[] = []
      for (const leaf of leaves) collect(choicesOf(leaf, context), context, path, matches)
      return matches.length > 1 ? matches.sort(compareMatches) : matches
    },
  }
}

/** Plain comparison of ids: the order must not depend on the machine's language. */
export function compareRules(a: Rule, b: Rule): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return a.id < b.id ? -1 : Number(a.id > b.id)
}

const compareMatches = (a: Match, b: Match): number => compareRules(a.rule, b.rule)

interface Candidate {
  readonly rule: Rule
  readonly pattern: PathPattern
  readonly holds: Predicate | undefined
  /** Shared by all requests when nothing is captured. */
  readonly match: Match
}

/** The rules of one path, for each method that one of them names and for all other methods. */
interface Leaf {
  readonly byMethod: ReadonlyMap<string, Choices>
  readonly others: Choices
}

interface Choices {
  /** The whole answer, when it is the same for every request. */
  readonly ready: readonly Match[] | undefined
  readonly candidates: Candidates<Candidate>
}

function compileRule(rule: Rule): Candidate {
  return {
    rule,
    pattern: compilePathPattern(rule.path),
    holds: compileConditions(rule.when),
    match: Object.freeze({ rule, pathVariables: undefined }),
  }
}

function compileLeaf(alike: readonly Candidate[]): Leaf {
  const byMethod = new Map<string, Choices>()
  for (const method of new Set(alike.flatMap(({ rule }) => rule.methods))) {
    const allowed = alike.filter(({ rule }) => rule.methods.length === 0 || rule.methods.includes(method))
    byMethod.set(method, compileChoices(allowed))
  }
  return { byMethod, others: compileChoices(alike.filter(({ rule }) => rule.methods.length === 0)) }
}

function compileChoices(candidates: readonly Candidate[]): Choices {
  const same = candidates.every(({ holds, pattern }) => !holds && !pattern.captures)
  const ready = same ? Object.freeze(candidates.map(({ match }) => match)) : undefined
  return { ready, candidates: indexConditions(candidates) }
}

function choicesOf({ byMethod, others }: Leaf, { method }: RequestContext): Choices {
  if (byMethod.size === 0 || method === undefined) return others
  return byMethod.get(method) ?? byMethod.get(method.toUpperCase()) ?? others
}

function collect({ ready, candidates }: Choices, context: RequestContext, path: string, matches: Match[]): void {
  if (ready) {
    for (const match of ready) matches.push(match)
    return
  }
  for (const { rule, pattern, holds, match } of candidates(context)) {
    const pathVariables = pattern.variables(path)
    if (holds && !holds(context, pathVariables)) continue
    matches.push(pathVariables ? { rule, pathVariables } : match)
  }
}
