import { canonicalPattern, foldPath } from './characters.js'
import { compileGlob, matchesGlob, type SegmentGlob } from './segment-glob.js'
import { withoutDots } from './spellings.js'

/**
 * One segment of a pattern. A capture inside a segment is a glob too (`{id}.json` is `?*.json`), so that patterns which
 * differ only in the names they capture share a place in the tree.
 */
export interface PatternSegment {
  readonly kind: 'literal' | 'any' | 'glob' | 'deep'
  readonly text: string
  /** Of a glob alone. */
  readonly glob: SegmentGlob | undefined
}

export type PathVariables = Readonly<Record<string, string>>

/** A compiled path pattern. */
export interface PathPattern {
  readonly segments: readonly PatternSegment[]
  /** The same text for all patterns that match the same way, whatever they capture. */
  readonly shape: string
  readonly captures: Captures | undefined
}

/** What a pattern captures; nothing else of it is needed once a path is known to match. */
export interface Captures {
  readonly names: readonly Capture[]
  /** The pattern, if a `**` comes before a name. Otherwise segment n of the pattern is segment n of the path. */
  readonly behindDeep: readonly PatternSegment[] | undefined
}

/** Where in the pattern a name is captured, and how much literal text around it is not part of the value. */
interface Capture {
  readonly name: string
  readonly index: number
  readonly before: number
  readonly after: number
}

/** `caseSensitive` says how the paths are normalised that it is for. */
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
    // `**` twice in a row says no more than once.
    if (segment.kind !== 'deep' || segments.at(-1)?.kind !== 'deep') segments.push(segment)
  }
  const shape = `/${segments.map(({ text }) => text).join('/')}`
  return {
    segments,
    shape,
    captures: names.length === 0 ? undefined : { names, behindDeep: behindDeep(segments, names) },
  }
}

/** Whether a normalised path matches. */
export function matchesPath({ segments }: PathPattern, path: string): boolean {
  return matchesFrom(segments, path, path === '/' ? 2 : 1)
}

/** The same for the part of a path whose first segment starts at `start`; one past the end, no segment is left. */
export function matchesFrom(segments: readonly PatternSegment[], path: string, start: number): boolean {
  let at = start
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i] as PatternSegment
    if (segment.kind === 'deep') {
      if (i === segments.length - 1) return true
      return placesOf(segments.slice(i), at > path.length ? [] : path.slice(at).split('/')) !== undefined
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

export function segmentEnd(path: string, start: number): number {
  const slash = path.indexOf('/', start)
  return slash === -1 ? path.length : slash
}

/** What the `{name}`s stand for in a normalised path that matches, percent-decoded. */
export function capturedFrom({ names, behindDeep }: Captures, path: string): PathVariables {
  const places = behindDeep && placesOf(behindDeep, path === '/' ? [] : path.slice(1).split('/'))
  const variables: Record<string, string> = {}
  let start = 1
  let reached = 0
  for (const { name, index, before, after } of names) {
    const place = places ? (places[index] as number) : index
    for (; reached < place; reached++) start = path.indexOf('/', start) + 1
    variables[name] = decodedText(path.slice(start + before, segmentEnd(path, start) - after))
  }
  return variables
}

const longestPattern = 2048
/** What a `**` costs grows with the segments behind it. */
const mostSegments = 64

/** What is wrong with a pattern, for the author of a rule; undefined when nothing is. */
export function pathPatternMistake(text: string): string | undefined {
  if (text.length > longestPattern) return `must have at most ${longestPattern} characters`
  const names = new Set<string>()
  const parts = partsOf(text)
  if (parts.length > mostSegments) return `must have at most ${mostSegments} segments`
  for (const part of parts) {
    if (!/^:|[{}]/.test(part)) continue
    const capture = captureIn(part)
    if (!capture) {
      return `"${part}": a segment takes one {name} of letters, digits, "_" and "-", or is a :name of letters, digits and "_", with no wildcard beside it. %3A is a colon, %7B a brace`
    }
    if (names.has(capture.name)) return `"{${capture.name}}" is captured twice`
    names.add(capture.name)
  }
  return undefined
}

function behindDeep(segments: PatternSegment[], names: readonly Capture[]): PatternSegment[] | undefined {
  const before = segments.slice(0, names.at(-1)?.index)
  return before.some(({ kind }) => kind === 'deep') ? segments : undefined
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

/** `{name}` with text around it, or `:name`, which is the same as `{name}` and always a whole segment. */
function captureIn(part: string): CaptureText | undefined {
  const braces = /^([^{}*?]*)\{([A-Za-z0-9_-]+)\}([^{}*?]*)$/.exec(part)
  const [, before = '', name = '', after = ''] = braces ?? /^():(\w+)()$/.exec(part) ?? []
  return name === '' || name === '__proto__' || before.startsWith(':') ? undefined : { name, before, after }
}

function segmentOf(part: string, capture: CaptureText | undefined, caseSensitive: boolean): PatternSegment {
  if (part === '**') return { kind: 'deep', text: '**', glob: undefined }
  // A capture is never empty, as a whole segment is never empty.
  const glob = literalText(capture ? `${capture.before}?*${capture.after}` : part.replace(/\*+/g, '*'), caseSensitive)
  if (glob === '*' || glob === '?*') return { kind: 'any', text: '*', glob: undefined }
  // A copy, since a slice of the pattern would be slower to compare with and keep the whole of it.
  const copy = Buffer.from(glob).toString()
  return /[*?]/.test(copy)
    ? { kind: 'glob', text: copy, glob: compileGlob(copy) }
    : { kind: 'literal', text: copy, glob: undefined }
}

/** As normalised paths spell it. */
function literalText(text: string, caseSensitive: boolean): string {
  const literal = text.replaceAll('%3A', ':')
  return caseSensitive ? literal : foldPath(literal)
}

function decodedText(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Which part of the path each segment of the pattern takes; undefined if they do not match. Only the latest `**` is
 * ever extended: giving more to an earlier one could not help a later one. So the cost is at most parts × segments, and a
 * pattern has at most 64 segments.
 */
function placesOf(segments: readonly PatternSegment[], parts: readonly string[]): readonly number[] | undefined {
  const places: number[] = []
  let index = 0
  let deep = -1
  let resume = 0
  for (let at = 0; at < parts.length; ) {
    const segment = segments[index]
    if (segment?.kind === 'deep') {
      deep = index++
      resume = at
    } else if (segment && matchesSegment(segment, parts[at] as string)) {
      places[index++] = at++
    } else if (deep >= 0) {
      index = deep + 1
      at = ++resume
    } else return undefined
  }
  if (segments[index]?.kind === 'deep') index++
  return index === segments.length ? places : undefined
}

function matchesSegment(segment: PatternSegment, part: string): boolean {
  if (segment.kind === 'any') return true
  return segment.glob ? matchesGlob(segment.glob, part) : segment.text === part
}
