import { ownText } from '../../keys/bounded-key.js'
import { canonicalPattern, foldPath } from './characters.js'
import { compileGlob, type SegmentGlob } from './segment-glob.js'
import { withoutDots } from './spellings.js'

/**
 * One segment of a pattern. A capture within a segment is a glob (`{id}.json` is `?*.json`), so that patterns that differ only
 * in their capture names share a node of the tree. The kind `globstar` is `**`.
 */
export interface PatternSegment {
  readonly kind: 'literal' | 'any' | 'glob' | 'globstar'
  readonly text: string
  /** Set for the kind `glob` only. */
  readonly glob: SegmentGlob | undefined
}

export type PathVariables = Readonly<Record<string, string>>

/** A compiled path pattern. */
export interface PathPattern {
  readonly segments: readonly PatternSegment[]
  /** Equal for all patterns that match the same paths segment by segment, regardless of their captures. */
  readonly shape: string
  readonly captures: Captures | undefined
}

/** The captures of a pattern. They suffice to extract the variables from a matching path. */
export interface Captures {
  readonly names: readonly Capture[]
  /** All segments of the pattern, if a `**` precedes a capture. Otherwise segment n of the pattern matches segment n of the path. */
  readonly globstarSegments: readonly PatternSegment[] | undefined
}

/** The segment that captures a name, and the lengths of the literal text before and after the value. */
interface Capture {
  readonly name: string
  readonly index: number
  readonly before: number
  readonly after: number
}

/** Compiles a pattern. `caseSensitive` must be the same as in the normalisation of the paths. */
export function compilePathPattern(text: string, caseSensitive = false): PathPattern {
  const segments: PatternSegment[] = []
  const names: Capture[] = []
  for (const part of partsOf(text)) {
    const capture = captureIn(part)
    const segment = segmentOf(part, capture, caseSensitive)
    if (capture) {
      const before = literalText(capture.before, caseSensitive).length
      names.push({
        name: capture.name,
        index: segments.length,
        before,
        after: literalText(capture.after, caseSensitive).length,
      })
    }
    // Consecutive `**` are equivalent to one.
    if (segment.kind !== 'globstar' || segments.at(-1)?.kind !== 'globstar') segments.push(segment)
  }
  const shape = `/${segments.map(({ text }) => text).join('/')}`
  return {
    segments,
    shape,
    captures: names.length === 0 ? undefined : { names, globstarSegments: globstarSegments(segments, names) },
  }
}

const maxPatternLength = 2048
/** Bounds the cost of a `**`, which grows with the number of segments after it. */
const maxSegments = 64

/** Describes the first issue of a pattern. Returns undefined if the pattern is valid. */
export function pathPatternIssue(text: string): string | undefined {
  if (text.length > maxPatternLength) return `must have at most ${maxPatternLength} characters`
  const names = new Set<string>()
  const parts = partsOf(text)
  if (parts.length > maxSegments) return `must have at most ${maxSegments} segments`
  for (const part of parts) {
    if (!/^:|[{}]/.test(part)) continue
    const capture = captureIn(part)
    if (!capture) {
      return `has an invalid segment "${part}". A segment may contain one {name} of letters, digits, "_" and "-" without wildcards, or be a :name of letters, digits and "_". Write a literal colon as %3A and a literal brace as %7B or %7D`
    }
    if (names.has(capture.name)) return `captures "{${capture.name}}" twice`
    names.add(capture.name)
  }
  return undefined
}

function globstarSegments(segments: PatternSegment[], names: readonly Capture[]): PatternSegment[] | undefined {
  const before = segments.slice(0, names.at(-1)?.index)
  return before.some(({ kind }) => kind === 'globstar') ? segments : undefined
}

function partsOf(pattern: string): string[] {
  const path = withoutDots(canonicalPattern(pattern))
  return path === '/' ? [] : path.slice(1).split('/')
}

interface CaptureText {
  readonly name: string
  readonly before: string
  readonly after: string
}

/** Parses `{name}` with optional text around it, or `:name`, which is always a whole segment. */
function captureIn(part: string): CaptureText | undefined {
  const braces = /^([^{}*?]*)\{([A-Za-z0-9_-]+)\}([^{}*?]*)$/.exec(part)
  const [, before = '', name = '', after = ''] = braces ?? /^():(\w+)()$/.exec(part) ?? []
  return name === '' || name === '__proto__' || before.startsWith(':') ? undefined : { name, before, after }
}

function segmentOf(part: string, capture: CaptureText | undefined, caseSensitive: boolean): PatternSegment {
  if (part === '**') return { kind: 'globstar', text: '**', glob: undefined }
  // `?*` and not `*`, because a captured value is never empty.
  const glob = literalText(capture ? `${capture.before}?*${capture.after}` : part.replace(/\*+/g, '*'), caseSensitive)
  if (glob === '*' || glob === '?*') return { kind: 'any', text: '*', glob: undefined }
  // A slice of the pattern would be slower to compare and keep the whole pattern in memory.
  const copy = ownText(glob)
  return /[*?]/.test(copy)
    ? { kind: 'glob', text: copy, glob: compileGlob(copy) }
    : { kind: 'literal', text: copy, glob: undefined }
}

/** The text as it appears in normalised paths. */
function literalText(text: string, caseSensitive: boolean): string {
  const literal = text.replaceAll('%3A', ':')
  return caseSensitive ? literal : foldPath(literal)
}
