import { compileConditions, type Predicate } from './condition.js'
import { indexConditions, type Narrow } from './condition-index.js'
import { normalisePath } from './normalise-path.js'
import {
  type Captures,
  capturedFrom,
  compilePathPattern,
  type PathPattern,
  type PathVariables,
} from './path-pattern.js'
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
  const byShape = new Map<string, { readonly pattern: PathPattern; readonly candidates: Candidate[] }>()
  const sharedCaptures = new Map<string, Captures>()
  const enabled = ruleSet.rules.filter((rule) => rule.enabled).sort(compareRules)
  for (const [rank, rule] of enabled.entries()) {
    const pattern = compilePathPattern(rule.path)
    const alike = byShape.get(pattern.shape) ?? { pattern, candidates: [] }
    byShape.set(pattern.shape, alike)
    alike.candidates.push({
      match: Object.freeze({ rule, pathVariables: undefined, rank }),
      captures: pattern.captures && shared(sharedCaptures, pattern.captures),
      holds: compileConditions(rule.when),
    })
  }
  const tree = createPathTree<Leaf>()
  for (const { pattern, candidates } of byShape.values()) tree.set(pattern.segments, compileLeaf(candidates))

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
  /** The answer for every request, unless something is captured. */
  readonly match: RankedMatch
  readonly captures: Captures | undefined
  readonly holds: Predicate | undefined
}

interface Choices {
  /** The whole answer, when it is the same for every request. */
  readonly ready: readonly RankedMatch[] | undefined
  readonly candidates: readonly Candidate[]
  /** Narrows the candidates down, where there are so many that it pays. */
  readonly narrow: Narrow<Candidate> | undefined
}

/** The rules of one path: for methods that no rule names, and for each that one does. */
interface Leaf extends Choices {
  readonly byMethod: ReadonlyMap<string, Choices> | undefined
}

/** Thousands of rules often capture the same name at the same place; what they share is found in the cache. */
function shared(known: Map<string, Captures>, captures: Captures): Captures {
  const text = JSON.stringify(captures)
  const first = known.get(text) ?? captures
  known.set(text, first)
  return first
}

function compileLeaf(candidates: readonly Candidate[]): Leaf {
  const allowing = (method: string | undefined) =>
    compileChoices(candidates.filter(({ match: { rule } }) => rule.methods.length === 0 || includes(rule, method)))
  const methods = new Set(candidates.flatMap(({ match }) => match.rule.methods))
  const byMethod = new Map([...methods].map((method) => [method, allowing(method)]))
  return { ...allowing(undefined), byMethod: byMethod.size === 0 ? undefined : byMethod }
}

const includes = ({ methods }: Rule, method: string | undefined): boolean =>
  method !== undefined && methods.includes(method)

function compileChoices(candidates: readonly Candidate[]): Choices {
  const same = candidates.every(({ holds, captures }) => !holds && !captures)
  const ready = same ? Object.freeze(candidates.map(({ match }) => match)) : undefined
  return { ready, candidates, narrow: indexConditions(candidates, ({ match }) => match.rule.when) }
}

function choicesOf(leaf: Leaf, { method }: RequestContext): Choices {
  if (!leaf.byMethod || method === undefined) return leaf
  return leaf.byMethod.get(method) ?? leaf.byMethod.get(method.toUpperCase()) ?? leaf
}

function collect(choices: Choices, context: RequestContext, path: string, matches: RankedMatch[]): void {
  if (choices.ready) {
    for (const match of choices.ready) matches.push(match)
    return
  }
  for (const { match, captures, holds } of choices.narrow?.(context) ?? choices.candidates) {
    const pathVariables = captures && capturedFrom(captures, path)
    if (holds && !holds(context, pathVariables)) continue
    matches.push(pathVariables ? { rule: match.rule, pathVariables, rank: match.rank } : match)
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
