import type { RequestContext } from '../request-context.js'
import type { Condition } from '../rule.js'
import { eachInSteps, type Steps } from '../scheduling/steps.js'
import { compileConditions, type Predicate } from './condition.js'
import { type ConditionFile, indexConditions, lookUp } from './condition-index.js'
import { type Captures, capturedFrom } from './paths/path-pattern.js'
import type { TreeLeaf } from './paths/path-tree.js'
import type { Match } from './rule-matcher.js'

/** A rule on its way into a leaf, with the conditions that are still to be asked. */
export interface Draft {
  /** What the rule answers, unless it captures something. */
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

/** Rules that a request has reached. */
export interface Answer {
  /** The matches, when they are the same for every request. */
  readonly ready: readonly Match[] | undefined
  readonly candidates: readonly Candidate[]
}

/** The rules of one path and one list of methods, in order. */
export interface Leaf extends Answer, TreeLeaf {
  /** Undefined for any method. */
  readonly methods: readonly string[] | undefined
  /** The match, when there is just one and it is the same for every request: nearer at hand than in a list. */
  readonly only: Match | undefined
  readonly files: readonly ConditionFile<Answer>[] | undefined
  /** The same path with other methods. */
  readonly next: Leaf | undefined
}

export function* compileLeaf(
  drafts: readonly Draft[],
  methods: readonly string[] | undefined,
  next: Leaf | undefined,
): Steps<Leaf> {
  const { others, files } = yield* indexConditions(drafts)
  const filed: ConditionFile<Answer>[] = []
  for (const { read, byValue } of files) {
    const answers = new Map<string, Answer>()
    yield* eachInSteps(byValue, ([value, found]) => answers.set(value, compileAnswer(found)))
    filed.push({ read, byValue: answers })
  }
  const { ready, candidates } = compileAnswer(others)
  const only = ready?.length === 1 ? ready[0] : undefined
  // Spelt out: objects made by spreading may each get a hidden class of their own, which makes reading them slow. What a
  // request reads first is in front, since thousands of leaves are not in the cache.
  return { tail: undefined, methods, files: filed.length === 0 ? undefined : filed, next, only, ready, candidates }
}

// Lists are not frozen: the engine reads frozen ones slowly.
const none: readonly never[] = []

function compileAnswer(drafts: readonly Draft[]): Answer {
  if (drafts.length === 0) return { ready: none, candidates: none }
  if (drafts.every(({ captures, when }) => !captures && when.length === 0)) {
    return { ready: drafts.map(({ match }) => match), candidates: none }
  }
  const compile = ({ match, captures, when, caseSensitive }: Draft) => ({
    match,
    captures,
    holds: compileConditions(when, caseSensitive),
  })
  return { ready: undefined, candidates: drafts.map(compile) }
}

/** Adds what this leaf has to say about a request. */
export function addAnswers(leaf: Leaf, method: string | undefined, context: RequestContext, answers: Answer[]): void {
  for (let one: Leaf | undefined = leaf; one; one = one.next) {
    if (one.methods && !allows(one.methods, method)) continue
    if (one.ready !== none) answers.push(one)
    if (one.files) for (const file of one.files) lookUp(file, context, answers)
  }
}

/**
 * The whole answer of a leaf, if it is one that is the same for every request; undefined if it takes more to tell. An only
 * match is put into `lone`, which is in the cache, where a list of its own would not be.
 */
export function readyAnswer(leaf: Leaf, method: string | undefined, lone: Match[]): readonly Match[] | undefined {
  let answer: readonly Match[] = none
  for (let one: Leaf | undefined = leaf; one; one = one.next) {
    if (one.files) return undefined
    if (one.methods && !allows(one.methods, method)) continue
    if (answer !== none) return undefined
    if (one.only !== undefined) {
      lone[0] = one.only
      answer = lone
    } else if (one.ready === undefined) return undefined
    else answer = one.ready
  }
  return answer
}

/** Rules name few methods, which are found faster in a row than by their hash. */
function allows(methods: readonly string[], method: string | undefined): boolean {
  for (let i = 0; i < methods.length; i++) if (methods[i] === method) return true
  return false
}

/** Adds those matches of an answer that hold. */
export function addMatches(answer: Answer, context: RequestContext, path: string, matches: Match[]): void {
  if (answer.ready) {
    for (const match of answer.ready) matches.push(match)
    return
  }
  for (const { match, captures, holds } of answer.candidates) {
    const pathVariables = captures && capturedFrom(captures, path)
    if (holds && !holds(context, pathVariables)) continue
    matches.push(pathVariables ? { rule: match.rule, rank: match.rank, pathVariables } : match)
  }
}
