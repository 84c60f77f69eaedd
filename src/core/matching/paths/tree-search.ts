import type { GlobIndex } from './glob-index.js'
import type { Captures, PathPattern, PathVariables, PatternSegment } from './path-pattern.js'
import { matchesGlob } from './segment-glob.js'

/** True if a normalised path matches the pattern. */
export function matchesPath({ segments }: PathPattern, path: string): boolean {
  return matchesFrom(segments, path, path === '/' ? 2 : 1)
}

/** True if the rest of the path from `start`, the start of a segment, matches. One past the end of the path means no segments. */
function matchesFrom(segments: readonly PatternSegment[], path: string, start: number): boolean {
  let at = start
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i] as PatternSegment
    if (segment.kind === 'globstar') {
      if (i === segments.length - 1) return true
      return matchedParts(segments.slice(i), at > path.length ? [] : path.slice(at).split('/')) !== undefined
    }
    if (at > path.length) return false
    const end = segmentEnd(path, at)
    if (segment.kind === 'literal') {
      if (end - at !== segment.text.length || !path.startsWith(segment.text, at)) return false
    } else if (segment.glob && !matchesGlob(segment.glob, path.slice(at, end))) return false
    at = end + 1
  }
  return at > path.length
}

function segmentEnd(path: string, start: number): number {
  const slash = path.indexOf('/', start)
  return slash === -1 ? path.length : slash
}

/** Extracts the percent-decoded values of the captures from a normalised path that matches. */
export function capturedFrom({ names, globstarSegments }: Captures, path: string): PathVariables {
  const positions = globstarSegments && matchedParts(globstarSegments, path === '/' ? [] : path.slice(1).split('/'))
  const variables: Record<string, string> = {}
  let start = 1
  let reached = 0
  for (const { name, index, before, after } of names) {
    const position = positions ? (positions[index] as number) : index
    for (; reached < position; reached++) start = path.indexOf('/', start) + 1
    variables[name] = decodedText(path.slice(start + before, segmentEnd(path, start) - after))
  }
  return variables
}

/**
 * The index of the path part that each segment of the pattern matches, or undefined if the path does not match. Backtracking
 * extends only the latest `**`, because extending an earlier one cannot help. The cost is at most parts × segments, and a
 * pattern has at most 64 segments.
 */
function matchedParts(segments: readonly PatternSegment[], parts: readonly string[]): readonly number[] | undefined {
  const positions: number[] = []
  let index = 0
  let globstar = -1
  let resume = 0
  for (let at = 0; at < parts.length; ) {
    const segment = segments[index]
    if (segment?.kind === 'globstar') {
      globstar = index++
      resume = at
    } else if (segment && matchesSegment(segment, parts[at] as string)) {
      positions[index++] = at++
    } else if (globstar >= 0) {
      index = globstar + 1
      at = ++resume
    } else return undefined
  }
  if (segments[index]?.kind === 'globstar') index++
  return index === segments.length ? positions : undefined
}

function decodedText(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

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

function matchesSegment(segment: PatternSegment, part: string): boolean {
  if (segment.kind === 'any') return true
  return segment.glob ? matchesGlob(segment.glob, part) : segment.text === part
}

/** A leaf with a tail is a branch of its own. */
export type Branch<Leaf extends TreeLeaf> = Node<Leaf> | Leaf

/** A continuation after one or more literal segments, joined by slashes. */
export interface Choice<Leaf extends TreeLeaf> {
  readonly first: number
  readonly text: string
  readonly next: Branch<Leaf>
}

export interface Node<Leaf extends TreeLeaf> {
  readonly tail: undefined
  /** The literals, if they are few and no wildcard matches here. They are compared in place, without finding the segment's end. */
  readonly choices: readonly Choice<Leaf>[] | undefined
  readonly literals: ReadonlyMap<string, Branch<Leaf>>
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

export const isNode = <Leaf extends TreeLeaf>(branch: Branch<Leaf>): branch is Node<Leaf> => 'literals' in branch

export function searchTree<Leaf extends TreeLeaf>(root: Branch<Leaf>): PathTree<Leaf> {
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
    if (node.choices !== undefined) {
      const choice = chosenAt(path, at, node.choices)
      if (choice === undefined) return
      at += choice.text.length + 1
      branch = choice.next
      continue
    }
    const end = segmentEnd(path, at)
    const segment = path.slice(at, end)
    const literal = node.literals.get(segment)
    at = end + 1
    if (node.globs) for (const child of node.globs.find(segment)) visit(walk, child, at)
    if (literal && node.any) visit(walk, node.any, at)
    branch = literal ?? node.any
  }
}

/** The choice whose whole segments the path has at `start`. At most one can match. */
function chosenAt<Leaf extends TreeLeaf>(
  path: string,
  start: number,
  choices: readonly Choice<Leaf>[],
): Choice<Leaf> | undefined {
  const first = path.charCodeAt(start)
  for (let i = 0; i < choices.length; i++) {
    const choice = choices[i] as Choice<Leaf>
    if (choice.first !== first) continue
    const end = start + choice.text.length
    if ((end === path.length || path.charCodeAt(end) === slash) && hasText(path, start, choice.text)) return choice
  }
  return undefined
}

/** Like `path.startsWith(text, start)` for a text with the same first character. Faster for short texts, because V8 inlines it. */
function hasText(path: string, start: number, text: string): boolean {
  for (let i = 1; i < text.length; i++) if (path.charCodeAt(start + i) !== text.charCodeAt(i)) return false
  return true
}

const slash = 0x2f

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
