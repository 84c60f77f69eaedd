import { eachInSteps, manyPerStep, type Steps } from '../../scheduling/steps.js'
import { GlobIndex } from './glob-index.js'
import type { PatternSegment } from './path-pattern.js'
import { type Branch, type Choice, isNode, type PathTree, searchTree, type TreeLeaf } from './tree-search.js'

/** A distinct pattern and its leaf. */
export interface Entry<Leaf extends TreeLeaf> {
  readonly segments: readonly PatternSegment[]
  readonly leaf: Leaf
}

/**
 * Compiles patterns to a tree, so that the cost of a search depends on the length of the path and not on the number of
 * patterns. The tree branches only where patterns differ: the rest of a single pattern is stored as a tail, and equal tails
 * are shared. With thousands of rules, requests therefore read mostly the same memory, which stays in the CPU cache.
 */
export function* pathTreeSteps<Leaf extends TreeLeaf>(entries: readonly Entry<Leaf>[]): Steps<PathTree<Leaf>> {
  return searchTree(yield* branchOf(entries, 0, false, new Map()))
}

type SharedTails = Map<string, readonly PatternSegment[]>

function* branchOf<Leaf extends TreeLeaf>(
  entries: readonly Entry<Leaf>[],
  depth: number,
  repeats: boolean,
  tails: SharedTails,
): Steps<Branch<Leaf>> {
  const [only] = entries
  if (only && entries.length === 1) {
    const tail = only.segments.slice(depth)
    // If a search can repeat here, a `**` becomes a node, because nodes skip repeated visits.
    if (!repeats || tail.every(({ kind }) => kind !== 'globstar')) {
      only.leaf.tail = shared(tails, tail)
      return only.leaf
    }
  }
  const { groups, leaf, below } = yield* groupEntries(entries, depth)
  function* branchesOf(kind: PatternSegment['kind']): Steps<Map<string, Branch<Leaf>>> {
    const branches = new Map<string, Branch<Leaf>>()
    for (const [text, group] of groups[kind]) {
      branches.set(text, yield* branchOf(group, depth + 1, repeats || kind === 'globstar', tails))
      yield
    }
    return branches
  }
  const literals = yield* branchesOf('literal')
  const globs = yield* globIndex(yield* branchesOf('glob'))
  const any = (yield* branchesOf('any')).get('*')
  const globstar = (yield* branchesOf('globstar')).get('**')
  const isFew = literals.size > 0 && literals.size <= maxChoices && !globs && !any
  const choices = isFew ? Array.from(literals, ([text, branch]) => choiceOf(text, branch)) : undefined
  return { tail: undefined, choices, literals, globs, any, globstar, leaf, below, repeats }
}

/** More literals than this are found faster in a map. */
const maxChoices = 8

/** A literal, together with those that follow it if nothing else continues or ends there. */
function choiceOf<Leaf extends TreeLeaf>(text: string, branch: Branch<Leaf>): Choice<Leaf> {
  const choice = { first: text.charCodeAt(0), text, next: branch }
  if (!isNode(branch) || branch.choices?.length !== 1) return choice
  if (branch.globstar || branch.leaf || branch.below) return choice
  const [{ text: rest, next }] = branch.choices as [Choice<Leaf>]
  return { ...choice, text: `${text}/${rest}`, next }
}

function* globIndex<Item>(globs: ReadonlyMap<string, Item>): Steps<GlobIndex<Item> | undefined> {
  if (globs.size === 0) return undefined
  const index = new GlobIndex<Item>()
  for (const [text, item] of globs) {
    index.add(text, item)
    yield
  }
  return index
}

function shared(tails: SharedTails, tail: readonly PatternSegment[]): readonly PatternSegment[] {
  const text = tail.map((segment) => segment.text).join('/')
  const first = tails.get(text) ?? tail
  tails.set(text, first)
  return first
}

interface Groups<Leaf extends TreeLeaf> {
  /** The entries with further segments, by the kind and the text of their next segment. */
  readonly groups: Readonly<Record<PatternSegment['kind'], Map<string, Entry<Leaf>[]>>>
  /** The leaf of the pattern that ends here. */
  readonly leaf: Leaf | undefined
  /** The leaf of the pattern that ends in a `**` here. It is a leaf of its node, not a branch. */
  readonly below: Leaf | undefined
}

function* groupEntries<Leaf extends TreeLeaf>(entries: readonly Entry<Leaf>[], depth: number): Steps<Groups<Leaf>> {
  const groups: Groups<Leaf>['groups'] = { literal: new Map(), glob: new Map(), any: new Map(), globstar: new Map() }
  let leaf: Leaf | undefined
  let below: Leaf | undefined
  const add = (entry: Entry<Leaf>): void => {
    const { segments } = entry
    const segment = segments[depth]
    if (segment === undefined) leaf = entry.leaf
    else if (segment.kind === 'globstar' && segments.length === depth + 1) below = entry.leaf
    else {
      const group = groups[segment.kind].get(segment.text)
      if (group) group.push(entry)
      else groups[segment.kind].set(segment.text, [entry])
    }
  }
  yield* eachInSteps(entries, add, manyPerStep)
  return { groups, leaf, below }
}
