import type { RequestContext } from '../request-context.js'
import { countsByPath, type Rule, type RuleSet, withHead } from '../rule.js'
import { finish, type Steps, sortInSteps } from '../scheduling/steps.js'
import { readPath } from './paths/normalise-path.js'
import { type Captures, compilePathPattern, type PathPattern, type PathVariables } from './paths/path-pattern.js'
import { pathTreeSteps } from './paths/path-tree.js'
import { type Answer, addAnswers, addMatches, compileLeaf, type Draft, type Leaf, readyAnswer } from './rule-leaf.js'

/** A rule that applies to a request, with the values of its `{name}` segments. */
export interface Match {
  readonly rule: Rule
  /** The index of the rule among the enabled rules of its set, in the order of `compareRules`. */
  readonly rank: number
  readonly pathVariables: PathVariables | undefined
}

export interface RuleMatcher {
  /** The normalised path of a request, or all interpretations if servers interpret it differently. */
  readPath(context: RequestContext): string | readonly string[]
  /**
   * All enabled rules that apply to a request with this path (one of `readPath`), by descending priority, ties by id.
   * The array is valid until the next call.
   */
  match(context: RequestContext, path: string): readonly Match[]
}

/** Compiles a rule set. The cost of a match then depends on the rules that match, not on the number of rules. */
export const compileRules = (ruleSet: RuleSet): RuleMatcher =>
  finish(matcherSteps(finish(rankedRules(ruleSet)), ruleSet.caseSensitive === true))

/** As `compileRules`, for rules in order of rank. */
export function* matcherSteps(rules: readonly Rule[], caseSensitive: boolean): Steps<RuleMatcher> {
  const readsPath = !rules.every((rule) => isForEveryPath(rule) && !countsByPath(rule))
  const pathOf = readsPath ? ({ path }: RequestContext) => readPath(path, caseSensitive) : () => '/'
  if (rules.every(isForEveryRequest)) {
    const all = rules.map(matchOf)
    return { readPath: pathOf, match: () => all }
  }
  const tree = yield* pathTreeSteps(yield* compileLeaves(rules, caseSensitive))
  const single: Match[] = []
  return {
    readPath: pathOf,
    match(context, path) {
      const method = upperCase(context.method)
      const count = tree.find(path)
      const constant = count === 1 ? readyAnswer(tree.found[0] as Leaf, method, single) : undefined
      if (constant !== undefined) return constant
      const found: Answer[] = []
      for (let i = 0; i < count; i++) addAnswers(tree.found[i] as Leaf, method, context, found)
      const [first] = found
      if (first?.ready && found.length === 1) return first.ready
      const matches: Match[] = []
      for (const rules of found) addMatches(rules, context, path, matches)
      return inOrder(matches)
    },
  }
}

const isForEveryPath = ({ path }: Rule): boolean => path === '/**'

export const isForEveryRequest = (rule: Rule): boolean =>
  isForEveryPath(rule) && rule.methods.length === 0 && rule.when.length === 0

const matchOf = (rule: Rule, rank: number): Match => Object.freeze({ rule, rank, pathVariables: undefined })

/** Most methods are already upper case, and checking is faster than converting. */
function upperCase(method: string | null | undefined): string | undefined {
  if (method === undefined || method === null) return undefined
  for (let i = 0; i < method.length; i++) if (method.charCodeAt(i) > lastCapital) return method.toUpperCase()
  return method
}

const lastCapital = 0x5a

/** The enabled rules in order of rank. */
export const rankedRules = ({ rules }: RuleSet): Steps<readonly Rule[]> =>
  sortInSteps(
    rules.filter((rule) => rule.enabled),
    compareRules,
  )

/** Compares ids by code unit, because the order must not depend on the locale. */
export function compareRules(a: Rule, b: Rule): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return a.id < b.id ? -1 : Number(a.id > b.id)
}

/** The rules with the same path pattern, by their methods. */
interface RulesOfPath {
  readonly segments: PathPattern['segments']
  readonly byMethods: Map<string, Draft[]>
}

function* compileLeaves(rules: readonly Rule[], caseSensitive: boolean) {
  const byShape = new Map<string, RulesOfPath>()
  // Many rules often have the same methods and captures. Shared objects stay in the CPU cache.
  const methodLists = new Map<string, readonly string[] | undefined>([['', undefined]])
  const captureLists = new Map<string, Captures>()
  for (const [rank, rule] of rules.entries()) {
    yield
    const { shape, segments, captures } = compilePathPattern(rule.path, caseSensitive)
    const { byMethods } = getOrSet(byShape, shape, (): RulesOfPath => ({ segments, byMethods: new Map() }))
    const methodList = withHead(rule.methods)
    const methods = methodList.join(' ')
    getOrSet(methodLists, methods, () => methodList)
    getOrSet(byMethods, methods, (): Draft[] => []).push({
      match: matchOf(rule, rank),
      captures: captures && getOrSet(captureLists, JSON.stringify(captures), () => captures),
      when: rule.when,
      caseSensitive,
    })
  }
  const leaves: { readonly segments: PathPattern['segments']; readonly leaf: Leaf }[] = []
  for (const { segments, byMethods } of byShape.values()) {
    let leaf: Leaf | undefined
    for (const [methods, drafts] of byMethods) leaf = yield* compileLeaf(drafts, methodLists.get(methods), leaf)
    leaves.push({ segments, leaf: leaf as Leaf })
    yield
  }
  return leaves
}

function getOrSet<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  if (!map.has(key)) map.set(key, create())
  return map.get(key) as Value
}

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
