import type { RequestContext } from '../request-context.js'
import type { Condition } from '../rule.js'
import { eachInSteps, type Steps } from '../scheduling/steps.js'
import { compileConditions, type Predicate } from './condition.js'
import { type ConditionFile, indexConditions, lookUp } from './condition-index.js'
import { type Captures, capturedFrom } from './paths/path-pattern.js'
import type { TreeLeaf } from './paths/path-tree.js'
import type { Match } from './rule-matcher.js'

/** A rule to be compiled into a leaf, with the conditions that remain to be evaluated. */
export interface Draft {
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
export interface Answer {
  /** The matches, if they are the same for every request. Otherwise `candidates` must be evaluated. */
  readonly ready: readonly Match[] | undefined
  readonly candidates: readonly Candidate[]
}

/** The rules of one path and one list of methods, in order. */
export interface Leaf extends Answer, TreeLeaf {
  /** Undefined for all methods. */
  readonly methods: readonly string[] | undefined
  /** The match, if there is exactly one and it is the same for every request. Stored outside the list to save a memory access. */
  readonly only: Match | undefined
  readonly files: readonly ConditionFile<Answer>[] | undefined
  /** The leaf of the same path with other methods. */
  readonly next: Leaf | undefined
}

export function* compileLeaf(
  drafts: readonly Draft[],
  methods: readonly string[] | undefined,
  next: Leaf | undefined,
): Steps<Leaf> {
  const { others, files } = yield* indexConditions(drafts)
  const compiled: ConditionFile<Answer>[] = []
  for (const { read, byValue } of files) {
    const entries = new Map<string, Answer>()
    yield* eachInSteps(byValue, ([value, found]) => entries.set(value, compileDrafts(found)))
    compiled.push({ read, byValue: entries })
  }
  const { ready, candidates } = compileDrafts(others)
  const only = ready?.length === 1 ? ready[0] : undefined
  // Lists all members, because objects created by spreading may each get their own hidden class, which makes reads slow.
  // The members that a request reads first come first, because thousands of leaves do not fit into the CPU cache.
  return {
    tail: undefined,
    methods,
    files: compiled.length === 0 ? undefined : compiled,
    next,
    only,
    ready,
    candidates,
  }
}

// Not frozen, because V8 reads frozen arrays slowly.
const none: readonly never[] = []

function compileDrafts(drafts: readonly Draft[]): Answer {
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

/** Adds the rules of a leaf, and of the leaves after it, that apply to the method and the indexed fields of a request. */
export function addAnswers(leaf: Leaf, method: string | undefined, context: RequestContext, found: Answer[]): void {
  for (let one: Leaf | undefined = leaf; one; one = one.next) {
    if (one.methods && !includesMethod(one.methods, method)) continue
    if (one.ready !== none) found.push(one)
    if (one.files) for (const file of one.files) lookUp(file, context, found)
  }
}

/**
 * The matches of a leaf, if they do not depend on the request beyond its method; otherwise undefined. A single match is
 * returned in the reused array `single`, which is in the CPU cache, while an array of the leaf would not be.
 */
export function readyAnswer(leaf: Leaf, method: string | undefined, single: Match[]): readonly Match[] | undefined {
  let matches: readonly Match[] = none
  for (let one: Leaf | undefined = leaf; one; one = one.next) {
    if (one.files) return undefined
    if (one.methods && !includesMethod(one.methods, method)) continue
    if (matches !== none) return undefined
    if (one.only !== undefined) {
      single[0] = one.only
      matches = single
    } else if (one.ready === undefined) return undefined
    else matches = one.ready
  }
  return matches
}

/** Rules have few methods, so a linear search is faster than a hash lookup. */
function includesMethod(methods: readonly string[], method: string | undefined): boolean {
  for (let i = 0; i < methods.length; i++) if (methods[i] === method) return true
  return false
}

/** Adds the matches whose conditions hold. */
export function addMatches(found: Answer, context: RequestContext, path: string, matches: Match[]): void {
  if (found.ready) {
    for (const match of found.ready) matches.push(match)
    return
  }
  for (const { match, captures, holds } of found.candidates) {
    const pathVariables = captures && capturedFrom(captures, path)
    if (holds && !holds(context, pathVariables)) continue
    matches.push(pathVariables ? { rule: match.rule, rank: match.rank, pathVariables } : match)
  }
}
