import type { PatternSegment } from './path-pattern.js'
import { matchesGlob } from './segment-glob.js'

/**
 * Many patterns as one tree, so that finding those that match a path costs about as much as reading the path, however
 * many there are. Patterns that match alike share their nodes.
 */
export interface PathTree<Leaf> {
  /** Puts a leaf where these segments end, instead of one that may be there. */
  set(segments: readonly PatternSegment[], leaf: Leaf): void
  /** Every leaf whose pattern matches a normalised path, each once. */
  find(path: string): readonly Leaf[]
}

interface Node<Leaf> {
  /** Undefined rather than empty: most nodes are the last of their pattern, and small ones stay in the cache. */
  literals: Map<string, Node<Leaf>> | undefined
  globs: Map<string, Node<Leaf>> | undefined
  any: Node<Leaf> | undefined
  /** What follows a `**` here: tried from this segment of the path and from every later one. */
  deep: Node<Leaf> | undefined
  /** A pattern that ends here. */
  leaf: Leaf | undefined
  /** A pattern that ends in a `**` here. */
  below: Leaf | undefined
  /** Behind some `**`, so that one path may come by here several times. */
  readonly repeats: boolean
}

export function createPathTree<Leaf>(): PathTree<Leaf> {
  const root = createNode<Leaf>(false)
  return {
    set(segments, leaf) {
      let node = root
      for (const [index, segment] of segments.entries()) {
        if (segment.kind === 'deep' && index === segments.length - 1) {
          node.below = leaf
          return
        }
        node = childOf(node, segment)
      }
      node.leaf = leaf
    },
    find(path) {
      const walk: Walk<Leaf> = { path, found: [], passed: undefined }
      visit(walk, root, path === '/' ? 2 : 1)
      return walk.found
    },
  }
}

function createNode<Leaf>(repeats: boolean): Node<Leaf> {
  return {
    literals: undefined,
    globs: undefined,
    any: undefined,
    deep: undefined,
    leaf: undefined,
    below: undefined,
    repeats,
  }
}

function childOf<Leaf>(node: Node<Leaf>, { kind, text }: PatternSegment): Node<Leaf> {
  if (kind === 'any') {
    node.any ??= createNode(node.repeats)
    return node.any
  }
  if (kind === 'deep') {
    node.deep ??= createNode(true)
    return node.deep
  }
  if (kind === 'glob') {
    node.globs ??= new Map()
    return childIn(node.globs, text, node.repeats)
  }
  node.literals ??= new Map()
  return childIn(node.literals, text, node.repeats)
}

function childIn<Leaf>(children: Map<string, Node<Leaf>>, text: string, repeats: boolean): Node<Leaf> {
  const child = children.get(text) ?? createNode(repeats)
  children.set(text, child)
  return child
}

interface Walk<Leaf> {
  readonly path: string
  readonly found: Leaf[]
  passed: Set<Node<Leaf>> | undefined
}

/** Follows the path from the segment that starts at `start`; one past its end means that no segment is left. */
function visit<Leaf>(walk: Walk<Leaf>, from: Node<Leaf>, start: number): void {
  const { path } = walk
  let node: Node<Leaf> | undefined = from
  let at = start
  while (node) {
    if (node.below !== undefined || node.deep) descend(walk, node, at)
    if (at > path.length) {
      if (node.leaf !== undefined) walk.found.push(node.leaf)
      return
    }
    const end = segmentEnd(path, at)
    const segment = path.slice(at, end)
    at = end + 1
    if (node.globs) {
      for (const [glob, child] of node.globs) if (matchesGlob(glob, segment)) visit(walk, child, at)
    }
    // The last branch is taken by the loop, so that a long literal pattern is not a deep recursion.
    const literal: Node<Leaf> | undefined = node.literals?.get(segment)
    if (literal && node.any) visit(walk, node.any, at)
    node = literal ?? node.any
  }
}

/**
 * Once per node is enough, even if the path comes by again: the first time is the earliest, and `**` reaches from there
 * to the end. This keeps any number of `**` at (nodes × segments) steps.
 */
function descend<Leaf>(walk: Walk<Leaf>, node: Node<Leaf>, start: number): void {
  if (node.repeats) {
    walk.passed ??= new Set()
    if (walk.passed.has(node)) return
    walk.passed.add(node)
  }
  if (node.below !== undefined) walk.found.push(node.below)
  if (!node.deep) return
  for (let at = start; at <= walk.path.length; at = segmentEnd(walk.path, at) + 1) visit(walk, node.deep, at)
}

function segmentEnd(path: string, start: number): number {
  const slash = path.indexOf('/', start)
  return slash === -1 ? path.length : slash
}
