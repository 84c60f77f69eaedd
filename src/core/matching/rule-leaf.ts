import { type Condition, type Rule, withHead } from '../rule.js'
import { eachInSteps, type Steps } from '../scheduling/steps.js'
import { compileConditions, type Predicate } from './condition.js'
import { type FieldIndex, indexConditions } from './condition-index.js'
import { type Captures, compilePathPattern, type PathPattern, type PathVariables } from './paths/path-pattern.js'
import type { TreeLeaf } from './paths/tree-search.js'

/** A rule that applies to a request, with the values of its `{name}` segments. */
export interface Match {
  readonly rule: Rule
  /** The index of the rule among the enabled rules of its set, in the order of `compareRules`. */
  readonly rank: number
  readonly pathVariables: PathVariables | undefined
}

export const matchOf = (rule: Rule, rank: number): Match => Object.freeze({ rule, rank, pathVariables: undefined })

/** A rule to be compiled into a leaf, with the conditions that remain to be evaluated. */
interface UncompiledRule {
  /** The match of the rule, if it captures nothing. */
  readonly match: Match
  readonly captures: Captures | undefined
  readonly when: readonly Condition[]
  readonly caseSensitive: boolean
}

interface Candidate {
  readonly match: Match
  readonly captures: Captures | undefined
  readonly holds: Predicate | undefined
}

/** Rules whose path and method match a request. */
export interface RuleMatches {
  /** The matches, if they are the same for every request. Otherwise `candidates` must be evaluated. */
  readonly constant: readonly Match[] | undefined
  readonly candidates: readonly Candidate[]
}

/** The rules of one path and one list of methods, in order. */
export interface Leaf extends RuleMatches, TreeLeaf {
  /** Undefined for all methods. */
  readonly methods: readonly string[] | undefined
  /** The match, if there is exactly one and it is the same for every request. Stored outside the list to save a memory access. */
  readonly only: Match | undefined
  readonly fieldIndexes: readonly FieldIndex<RuleMatches>[] | undefined
  /** The leaf of the same path with other methods. */
  readonly next: Leaf | undefined
}

function* compileLeaf(
  rules: readonly UncompiledRule[],
  methods: readonly string[] | undefined,
  next: Leaf | undefined,
): Steps<Leaf> {
  const { others, fieldIndexes } = yield* indexConditions(rules)
  const compiled: FieldIndex<RuleMatches>[] = []
  for (const { read, byValue } of fieldIndexes) {
    const entries = new Map<string, RuleMatches>()
    yield* eachInSteps(byValue, ([value, found]) => entries.set(value, compileMatches(found)))
    compiled.push({ read, byValue: entries })
  }
  const { constant, candidates } = compileMatches(others)
  const only = constant?.length === 1 ? constant[0] : undefined
  // Lists all members, because objects created by spreading may each get their own hidden class, which makes reads slow.
  // The members that a request reads first come first, because thousands of leaves do not fit into the CPU cache.
  return {
    tail: undefined,
    methods,
    fieldIndexes: compiled.length === 0 ? undefined : compiled,
    next,
    only,
    constant,
    candidates,
  }
}

// Not frozen, because V8 reads frozen arrays slowly.
export const none: readonly never[] = []

function compileMatches(rules: readonly UncompiledRule[]): RuleMatches {
  if (rules.length === 0) return { constant: none, candidates: none }
  if (rules.every(({ captures, when }) => !captures && when.length === 0)) {
    return { constant: rules.map(({ match }) => match), candidates: none }
  }
  const compile = ({ match, captures, when, caseSensitive }: UncompiledRule) => ({
    match,
    captures,
    holds: compileConditions(when, caseSensitive),
  })
  return { constant: undefined, candidates: rules.map(compile) }
}

/** The rules with the same path pattern, by their methods. */
interface RulesOfPath {
  readonly segments: PathPattern['segments']
  readonly byMethods: Map<string, UncompiledRule[]>
}

/** Groups rules by path pattern and methods. Returns one leaf per pattern. */
export function* compileLeaves(rules: readonly Rule[], caseSensitive: boolean) {
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
    getOrSet(byMethods, methods, (): UncompiledRule[] => []).push({
      match: matchOf(rule, rank),
      captures: captures && getOrSet(captureLists, JSON.stringify(captures), () => captures),
      when: rule.when,
      caseSensitive,
    })
  }
  const leaves: { readonly segments: PathPattern['segments']; readonly leaf: Leaf }[] = []
  for (const { segments, byMethods } of byShape.values()) {
    let leaf: Leaf | undefined
    for (const [methods, rules] of byMethods) leaf = yield* compileLeaf(rules, methodLists.get(methods), leaf)
    leaves.push({ segments, leaf: leaf as Leaf })
    yield
  }
  return leaves
}

function getOrSet<Value>(map: Map<string, Value>, key: string, create: () => Value): Value {
  if (!map.has(key)) map.set(key, create())
  return map.get(key) as Value
}
