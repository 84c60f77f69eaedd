import type { Steps } from '../../scheduling/steps.js'
import { GlobIndex } from './glob-index.js'
import { matchesFrom, type PatternSegment, segmentEnd } from './path-pattern.js'

/** Finds every leaf whose pattern matches a normalised path, each once. */
export interface PathTree<Leaf> {
  /** How many there are; they are the first so many of `found`, until the next search. */
  find(path: string): number
  readonly found: readonly Leaf[]
}

/** What a pattern leads to. A leaf is the tail itself, since one object is found faster than two. */
export interface TreeLeaf {
  /** What is left of the only pattern that leads here; set by the tree, if the pattern shares its end with no other. */
  tail: readonly PatternSegment[] | undefined
}

/** A pattern, different from all others, and its leaf. */
export interface Entry<Leaf extends TreeLeaf> {
  readonly segments: readonly PatternSegment[]
  readonly leaf: Leaf
}

/**
 * Many patterns as one tree, so that finding those that match a path costs about as much as reading the path, however
 * many there are. It branches only where patterns differ: what is left of a single pattern is kept as a tail, and equal
 * tails are kept once. A request among thousands of rules then touches little memory that no other request does.
 */
export function* pathTreeSteps<Leaf extends TreeLeaf>(entries: readonly Entry<Leaf>[]): Steps<PathTree<Leaf>> {
  const root = yield* branchOf(entries, 0, false, new Map())
  // Searches do not overlap, so one walk serves them all.
  const walk: Walk<Leaf> = { path: '', found: [], count: 0, passed: undefined }
  return {
    found: walk.found,
    find(path) {
      walk.path = path
      walk.count = 0
      walk.passed = undefined
      visit(walk, root, path === '/' ? 2 : 1)
      return walk.count
    },
  }
}

/** A leaf is a branch by itself if it has a tail. */
type Branch<Leaf extends TreeLeaf> = Node<Leaf> | Leaf

interface Node<Leaf extends TreeLeaf> {
  readonly tail: undefined
  readonly literals: ReadonlyMap<string, Branch<Leaf>>
  /** The text of the only literal, if there is just one: compared in place, it needs no copy of the segment. */
  readonly onlyText: string | undefined
  readonly onlyBranch: Branch<Leaf> | undefined
  readonly globs: GlobIndex<Branch<Leaf>> | undefined
  readonly any: Branch<Leaf> | undefined
  /** What follows a `**` here: tried from this segment of the path and from every later one. */
  readonly deep: Branch<Leaf> | undefined
  /** A pattern that ends here. */
  readonly leaf: Leaf | undefined
  /** A pattern that ends in a `**` here. */
  readonly below: Leaf | undefined
  /** Behind some `**`, so that one path may come by here several times. */
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
    // Where a path comes by several times, a `**` is left to the nodes, which know that once is enough.
    if (!repeats || tail.every(({ kind }) => kind !== 'deep')) {
      only.leaf.tail = shared(tails, tail)
      return only.leaf
    }
  }
  function* branchesOf(kind: PatternSegment['kind']): Steps<Map<string, Branch<Leaf>>> {
    const branches = new Map<string, Branch<Leaf>>()
    for (const [text, group] of yield* groupByText(entries, depth, kind)) {
      branches.set(text, yield* branchOf(group, depth + 1, repeats || kind === 'deep', tails))
      yield
    }
    return branches
  }
  const endsAt = (end: number, kind?: PatternSegment['kind']) =>
    entries.find(({ segments }) => segments.length === end && segments[depth]?.kind === kind)?.leaf
  const literals = yield* branchesOf('literal')
  const [onlyText, onlyBranch] = literals.size === 1 ? ([...literals][0] ?? []) : []
  return {
    tail: undefined,
    literals,
    onlyText,
    onlyBranch,
    globs: yield* globIndex(yield* branchesOf('glob')),
    any: (yield* branchesOf('any')).get('*'),
    deep: (yield* branchesOf('deep')).get('**'),
    leaf: endsAt(depth),
    below: endsAt(depth + 1, 'deep'),
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

/** The entries that go on with a segment of this kind. A `**` at the very end is a leaf of its node, not a branch. */
function* groupByText<Leaf extends TreeLeaf>(
  entries: readonly Entry<Leaf>[],
  depth: number,
  kind: PatternSegment['kind'],
): Steps<Map<string, Entry<Leaf>[]>> {
  const groups = new Map<string, Entry<Leaf>[]>()
  for (const [index, entry] of entries.entries()) {
    if (index % 1_024 === 1_023) yield
    const segment = entry.segments[depth]
    if (segment?.kind !== kind || (kind === 'deep' && entry.segments.length === depth + 1)) continue
    const group = groups.get(segment.text)
    if (group) group.push(entry)
    else groups.set(segment.text, [entry])
  }
  return groups
}

interface Walk<Leaf extends TreeLeaf> {
  path: string
  readonly found: Leaf[]
  count: number
  passed: Set<Node<Leaf>> | undefined
}

/** Follows the path from the segment that starts at `start`; one past its end means that no segment is left. */
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
    if (node.below !== undefined || node.deep) descend(walk, node, at)
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
 * Once per node is enough, even if the path comes by again: the first time is the earliest, and `**` reaches from there
 * to the end. This keeps any number of `**` at (nodes × segments) steps.
 */
function descend<Leaf extends TreeLeaf>(walk: Walk<Leaf>, node: Node<Leaf>, start: number): void {
  if (node.repeats) {
    walk.passed ??= new Set()
    if (walk.passed.has(node)) return
    walk.passed.add(node)
  }
  if (node.below !== undefined) walk.found[walk.count++] = node.below
  if (!node.deep) return
  for (let at = start; at <= walk.path.length; at = segmentEnd(walk.path, at) + 1) visit(walk, node.deep, at)
}
