import type { RequestContext } from '../request-context.js'
import { countsByPath, type Rule, type RuleSet, withHead } from '../rule.js'
import { finish, type Steps, sortInSteps } from '../scheduling/steps.js'
import { readPath } from './paths/normalise-path.js'
import { type Captures, compilePathPattern, type PathPattern, type PathVariables } from './paths/path-pattern.js'
import { pathTreeSteps } from './paths/path-tree.js'
import { type Answer, addAnswers, addMatches, compileLeaf, type Draft, type Leaf, readyAnswer } from './rule-leaf.js'

/** A rule that applies to a request, and what its `{name}` segments stand for there. */
export interface Match {
  readonly rule: Rule
  /** Its place among the enabled rules of the set, in the order of `compareRules`. */
  readonly rank: number
  readonly pathVariables: PathVariables | undefined
}

export interface RuleMatcher {
  /** The path of a request as rules look at it; all readings of it, if servers disagree about its meaning. */
  readPath(context: RequestContext): string | readonly string[]
  /**
   * Every enabled rule that applies to a request with this path, one of `readPath`: the highest priority first, ties by id.
   * The list is good until the next call.
   */
  match(context: RequestContext, path: string): readonly Match[]
}

/** Compiles a rule set once; each request then pays for the rules that match it and not for the others. */
export const compileRules = (ruleSet: RuleSet): RuleMatcher =>
  finish(matcherSteps(finish(rankedRules(ruleSet)), ruleSet.caseSensitive === true))

/** As `compileRules`, of the rules by rank. */
export function* matcherSteps(rules: readonly Rule[], caseSensitive: boolean): Steps<RuleMatcher> {
  const readsPath = !rules.every((rule) => isForEveryPath(rule) && !countsByPath(rule))
  const pathOf = readsPath ? ({ path }: RequestContext) => readPath(path, caseSensitive) : () => '/'
  if (rules.every(isForEveryRequest)) {
    const all = rules.map(matchOf)
    return { readPath: pathOf, match: () => all }
  }
  const tree = yield* pathTreeSteps(yield* compileLeaves(rules, caseSensitive))
  const lone: Match[] = []
  return {
    readPath: pathOf,
    match(context, path) {
      const method = upperCase(context.method)
      const count = tree.find(path)
      const only = count === 1 ? readyAnswer(tree.found[0] as Leaf, method, lone) : undefined
      if (only !== undefined) return only
      const answers: Answer[] = []
      for (let i = 0; i < count; i++) addAnswers(tree.found[i] as Leaf, method, context, answers)
      const [first] = answers
      if (first?.ready && answers.length === 1) return first.ready
      const matches: Match[] = []
      for (const answer of answers) addMatches(answer, context, path, matches)
      return inOrder(matches)
    },
  }
}

const isForEveryPath = ({ path }: Rule): boolean => path === '/**'

export const isForEveryRequest = (rule: Rule): boolean =>
  isForEveryPath(rule) && rule.methods.length === 0 && rule.when.length === 0

const matchOf = (rule: Rule, rank: number): Match => Object.freeze({ rule, rank, pathVariables: undefined })

/** Nearly all requests spell their method in capitals already; looking is cheaper than converting. */
function upperCase(method: string | null | undefined): string | undefined {
  if (method === undefined || method === null) return undefined
  for (let i = 0; i < method.length; i++) if (method.charCodeAt(i) > lastCapital) return method.toUpperCase()
  return method
}

const lastCapital = 0x5a

/** The rules that can match, by rank. */
export const rankedRules = ({ rules }: RuleSet): Steps<readonly Rule[]> =>
  sortInSteps(
    rules.filter((rule) => rule.enabled),
    compareRules,
  )

/** Plain comparison of ids: the order must not depend on the machine's language. */
export function compareRules(a: Rule, b: Rule): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  return a.id < b.id ? -1 : Number(a.id > b.id)
}

/** The rules of one path, by the methods they are for. */
interface Alike {
  readonly segments: PathPattern['segments']
  readonly byMethods: Map<string, Draft[]>
}

function* compileLeaves(rules: readonly Rule[], caseSensitive: boolean) {
  const byShape = new Map<string, Alike>()
  // Thousands of rules often have the same methods and captures. What they share is in the cache when it is needed.
  const methodLists = new Map<string, readonly string[] | undefined>([['', undefined]])
  const captureLists = new Map<string, Captures>()
  for (const [rank, rule] of rules.entries()) {
    yield
    const { shape, segments, captures } = compilePathPattern(rule.path, caseSensitive)
    const { byMethods } = getOrSet(byShape, shape, (): Alike => ({ segments, byMethods: new Map() }))
    const allowed = withHead(rule.methods)
    const methods = allowed.join(' ')
    getOrSet(methodLists, methods, () => allowed)
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
 * Sorted by rank, each once: a request with a list of values may have found a rule under several of them. Requests
 * match a few rules, and a few are sorted fastest by insertion.
 */
function inOrder(matches: Match[]): readonly Match[] {
  if (matches.length > 16) matches.sort((a, b) => a.rank - b.rank)
  let repeated = false
  for (let i = 1; i < matches.length; i++) {
    const match = matches[i] as Match
    let place = i
    for (; place > 0 && (matches[place - 1] as Match).rank > match.rank; place--) {
      matches[place] = matches[place - 1] as Match
    }
    matches[place] = match
    if (place > 0 && (matches[place - 1] as Match).rank === match.rank) repeated = true
  }
  return repeated ? matches.filter((match, i) => match.rank !== matches[i - 1]?.rank) : matches
}
