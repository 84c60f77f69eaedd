import { eachInSteps, manyPerStep, type Steps } from '../../scheduling/steps.js'
import { GlobIndex } from './glob-index.js'
import { matchesFrom, type PatternSegment, segmentEnd } from './path-pattern.js'

/** Finds every leaf whose pattern matches a normalised path, each once. */
export interface PathTree<Leaf> {
  /** Returns the number of matching leaves. They are the first entries of `found` until the next search. */
  find(path: string): number
  readonly found: readonly Leaf[]
}

/** The value of a pattern. The leaf also holds the tail, because reading one object is faster than reading two. */
export interface TreeLeaf {
  /** The remaining segments of the only pattern that leads here. Set by the tree if no other pattern shares them. */
  tail: readonly PatternSegment[] | undefined
}

/** A distinct pattern and its leaf. */
export interface Entry<Leaf extends TreeLeaf> {
  readonly segments: readonly PatternSegment[]
  readonly leaf: Leaf
}

/**
 * Compiles patterns to a tree, so that the cost of a search depends on the length of the path and not on the number of
 * patterns. The tree branches only where patterns differ: the rest of a single pattern is stored as a tail, and equal tails
 * are shared. With thousands of rules, most of the memory that a request reads is then read by other requests too.
 */
export function* pathTreeSteps<Leaf extends TreeLeaf>(entries: readonly Entry<Leaf>[]): Steps<PathTree<Leaf>> {
  const root = yield* branchOf(entries, 0, false, new Map())
  // Searches are synchronous, so all of them can share one state.
  const walk: Walk<Leaf> = { path: '', found: [], count: 0, visited: undefined }
  return {
    found: walk.found,
    find(path) {
      walk.path = path
      walk.count = 0
      walk.visited = undefined
      visit(walk, root, path === '/' ? 2 : 1)
      return walk.count
    },
  }
}

/** A leaf with a tail is a branch of its own. */
type Branch<Leaf extends TreeLeaf> = Node<Leaf> | Leaf

interface Node<Leaf extends TreeLeaf> {
  readonly tail: undefined
  readonly literals: ReadonlyMap<string, Branch<Leaf>>
  /** The text of the literal, if there is exactly one. It is compared in place, without slicing the segment. */
  readonly onlyText: string | undefined
  readonly onlyBranch: Branch<Leaf> | undefined
  readonly globs: GlobIndex<Branch<Leaf>> | undefined
  readonly any: Branch<Leaf> | undefined
  /** The continuation after a `**`, which is tried from this segment of the path and from every later one. */
  readonly globstar: Branch<Leaf> | undefined
  /** A pattern that ends here. */
  readonly leaf: Leaf | undefined
  /** A pattern that ends with a `**` here. */
  readonly below: Leaf | undefined
  /** True after a `**`: one search can reach this node several times. */
  readonly repeats: boolean
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
  const [onlyText, onlyBranch] = literals.size === 1 ? ([...literals][0] ?? []) : []
  return {
    tail: undefined,
    literals,
    onlyText,
    onlyBranch,
    globs: yield* globIndex(yield* branchesOf('glob')),
    any: (yield* branchesOf('any')).get('*'),
    globstar: (yield* branchesOf('globstar')).get('**'),
    leaf,
    below,
    repeats,
  }
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
  /** The entries that go on, by the kind and the text of their next segment. */
  readonly groups: Readonly<Record<PatternSegment['kind'], Map<string, Entry<Leaf>[]>>>
  /** Of the pattern that ends here. */
  readonly leaf: Leaf | undefined
  /** Of the pattern that ends in a `**` here, which is a leaf of its node, not a branch. */
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

interface Walk<Leaf extends TreeLeaf> {
  path: string
  readonly found: Leaf[]
  count: number
  visited: Set<Node<Leaf>> | undefined
}

/** Follows the path from the segment that starts at `start`. One past the end of the path means that no segment is left. */
function visit<Leaf extends TreeLeaf>(walk: Walk<Leaf>, from: Branch<Leaf>, start: number): void {
  const { path } = walk
  let branch: Branch<Leaf> | undefined = from
  let at = start
  while (branch) {
    if (branch.tail) {
      if (matchesFrom(branch.tail, path, at)) walk.found[walk.count++] = branch as Leaf
      return
    }
    const node = branch as Node<Leaf>
    if (node.below !== undefined || node.globstar) descend(walk, node, at)
    if (at > path.length) {
      if (node.leaf !== undefined) walk.found[walk.count++] = node.leaf
      return
    }
    const end = segmentEnd(path, at)
    const literal = literalAt(node, path, at, end)
    const segmentStart = at
    at = end + 1
    if (node.globs) for (const child of node.globs.find(path.slice(segmentStart, end))) visit(walk, child, at)
    if (literal && node.any) visit(walk, node.any, at)
    branch = literal ?? node.any
  }
}

function literalAt<Leaf extends TreeLeaf>(node: Node<Leaf>, path: string, start: number, end: number) {
  const { onlyText } = node
  if (onlyText === undefined) return node.literals.get(path.slice(start, end))
  return end - start === onlyText.length && path.startsWith(onlyText, start) ? node.onlyBranch : undefined
}

/**
 * Visits each node once per search: the first visit starts at the earliest segment, and `**` matches from there to the end of
 * the path. This bounds any number of `**` to (nodes × segments) steps.
 */
function descend<Leaf extends TreeLeaf>(walk: Walk<Leaf>, node: Node<Leaf>, start: number): void {
  if (node.repeats) {
    walk.visited ??= new Set()
    if (walk.visited.has(node)) return
    walk.visited.add(node)
  }
  if (node.below !== undefined) walk.found[walk.count++] = node.below
  if (!node.globstar) return
  for (let at = start; at <= walk.path.length; at = segmentEnd(walk.path, at) + 1) visit(walk, node.globstar, at)
}
