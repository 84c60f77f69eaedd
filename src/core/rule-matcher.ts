import { compileConditions, type Predicate } from './condition.js'
import { indexConditions, type Narrow } from './condition-index.js'
import { normalisePath } from './normalise-path.js'
import { capturedFrom, compilePathPattern, type PathPattern, type PathVariables } from './path-pattern.js'
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
  const enabled = ruleSet.rules.filter((rule) => rule.enabled).sort(compareRules)
  for (const [rank, rule] of enabled.entries()) {
    const candidate = compileRule(rule, rank)
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
      const matches: RankedMatch[] = []
      for (const leaf of leaves) collect(choicesOf(leaf, context), context, path, matches)
      return sortByRank(matches)
    },
  }
}

/** Plain comparison of ids: the order must not depend on the machine's language. */
export function compareRules(a: Rule, b: Rule): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return a.id < b.id ? -1 : Number(a.id > b.id)
}

/** Its rank is the rule's place in the order of all enabled rules. */
interface RankedMatch extends Match {
  readonly rank: number
}

interface Candidate {
  readonly rule: Rule
  readonly pattern: PathPattern
  readonly holds: Predicate | undefined
  /** Shared by all requests when nothing is captured. */
  readonly match: RankedMatch
}

/** The rules of one path, for each method that one of them names and for all other methods. */
interface Leaf {
  readonly byMethod: ReadonlyMap<string, Choices> | undefined
  readonly others: Choices
}

interface Choices {
  /** The whole answer, when it is the same for every request. */
  readonly ready: readonly RankedMatch[] | undefined
  readonly candidates: readonly Candidate[]
  /** Narrows the candidates down, where there are so many that it pays. */
  readonly narrow: Narrow<Candidate> | undefined
}

function compileRule(rule: Rule, rank: number): Candidate {
  return {
    rule,
    pattern: compilePathPattern(rule.path),
    holds: compileConditions(rule.when),
    match: Object.freeze({ rule, pathVariables: undefined, rank }),
  }
}

function compileLeaf(alike: readonly Candidate[]): Leaf {
  const byMethod = new Map<string, Choices>()
  for (const method of new Set(alike.flatMap(({ rule }) => rule.methods))) {
    const allowed = alike.filter(({ rule }) => rule.methods.length === 0 || rule.methods.includes(method))
    byMethod.set(method, compileChoices(allowed))
  }
  return {
    byMethod: byMethod.size === 0 ? undefined : byMethod,
    others: compileChoices(alike.filter(({ rule }) => rule.methods.length === 0)),
  }
}

function compileChoices(candidates: readonly Candidate[]): Choices {
  const same = candidates.every(({ holds, pattern }) => !holds && !pattern.captures)
  const ready = same ? Object.freeze(candidates.map(({ match }) => match)) : undefined
  return { ready, candidates, narrow: indexConditions(candidates) }
}

function choicesOf({ byMethod, others }: Leaf, { method }: RequestContext): Choices {
  if (!byMethod || method === undefined) return others
  return byMethod.get(method) ?? byMethod.get(method.toUpperCase()) ?? others
}

function collect(
  { ready, candidates, narrow }: Choices,
  context: RequestContext,
  path: string,
  matches: RankedMatch[],
): void {
  if (ready) {
    for (const match of ready) matches.push(match)
    return
  }
  for (const { rule, pattern, holds, match } of narrow ? narrow(context) : candidates) {
    const pathVariables = capturedFrom(pattern, path)
    if (holds && !holds(context, pathVariables)) continue
    matches.push(pathVariables ? { rule, pathVariables, rank: match.rank } : match)
  }
}

/** Requests match a few rules, and a few are sorted faster by insertion. */
function sortByRank(matches: RankedMatch[]): readonly Match[] {
  if (matches.length > 16) return matches.sort((a, b) => a.rank - b.rank)
  for (let i = 1; i < matches.length; i++) {
    const match = matches[i] as RankedMatch
    let place = i
    for (; place > 0 && (matches[place - 1] as RankedMatch).rank > match.rank; place--) {
      matches[place] = matches[place - 1] as RankedMatch
    }
    matches[place] = match
  }
  return matches
}
