import { normaliseSegments } from './normalise-path.js'
import { matchesGlob } from './segment-glob.js'

/**
 * One segment of a pattern. A capture inside a segment is a glob too (`{id}.json` is `?*.json`), so that patterns which
 * differ only in the names they capture share a place in the tree.
 */
export interface PatternSegment {
  readonly kind: 'literal' | 'any' | 'glob' | 'deep'
  readonly text: string
}

export type PathVariables = Readonly<Record<string, string>>

/** A compiled path pattern. All its methods take a normalised path. */
export interface PathPattern {
  readonly segments: readonly PatternSegment[]
  /** The same text for all patterns that match the same way, whatever they capture. */
  readonly shape: string
  readonly captures: boolean
  test(path: string): boolean
  /** What `{name}`s stand for in a path that matches, percent-decoded. Undefined when nothing is captured. */
  variables(path: string): PathVariables | undefined
}

/** Where in the pattern a name is captured, and how much literal text around it is not part of the value. */
interface Capture {
  readonly name: string
  readonly index: number
  readonly before: number
  readonly after: number
}

export function compilePathPattern(text: string): PathPattern {
  const segments: PatternSegment[] = []
  const captures: Capture[] = []
  for (const part of partsOf(normaliseSegments(text))) {
    const capture = captureIn(part)
    if (capture) captures.push({ ...capture, index: segments.length })
    const segment = segmentOf(part, capture)
    // `**` twice in a row says no more than once.
    if (segment.kind !== 'deep' || segments.at(-1)?.kind !== 'deep') segments.push(segment)
  }
  const lastCapture = captures.at(-1)?.index ?? -1
  // Before the first `**`, segment n of the pattern is segment n of the path.
  const fixed = !segments.slice(0, lastCapture + 1).some(({ kind }) => kind === 'deep')
  return {
    segments,
    shape: `/${segments.map(({ text }) => text).join('/')}`,
    captures: captures.length > 0,
    test: (path) => placesOf(segments, partsOf(path)) !== undefined,
    variables(path) {
      if (captures.length === 0) return undefined
      const parts = partsOf(path)
      return capturedFrom(parts, captures, fixed ? undefined : placesOf(segments, parts))
    },
  }
}

const longestPattern = 2048

/** What is wrong with a pattern, for the author of a rule; undefined when nothing is. */
export function pathPatternMistake(text: string): string | undefined {
  if (text.length > longestPattern) return `must have at most ${longestPattern} characters`
  const names = new Set<string>()
  for (const part of partsOf(normaliseSegments(text))) {
    if (!/[{}]/.test(part)) continue
    const capture = captureIn(part)
    if (!capture) {
      return `"${part}": a segment takes one {name} of letters, digits, "_" and "-", with no wildcard beside it`
    }
    if (names.has(capture.name)) return `"{${capture.name}}" is captured twice`
    names.add(capture.name)
  }
  return undefined
}

const partsOf = (path: string): string[] => (path === '/' ? [] : path.slice(1).split('/'))

function captureIn(part: string): Omit<Capture, 'index'> | undefined {
  const found = /^([^{}*?]*)\{([A-Za-z0-9_-]+)\}([^{}*?]*)$/.exec(part)
  if (!found) return undefined
  const [, before = '', name = '', after = ''] = found
  return { name, before: before.length, after: after.length }
}

function segmentOf(part: string, capture: Omit<Capture, 'index'> | undefined): PatternSegment {
  if (part === '**') return { kind: 'deep', text: '**' }
  // A capture is never empty, as a whole segment is never empty.
  const glob = capture
    ? `${part.slice(0, capture.before)}?*${part.slice(part.length - capture.after)}`
    : part.replace(/\*+/g, '*')
  if (glob === '*' || glob === '?*') return { kind: 'any', text: '*' }
  return { kind: /[*?]/.test(glob) ? 'glob' : 'literal', text: glob }
}

function capturedFrom(
  parts: readonly string[],
  captures: readonly Capture[],
  places: readonly number[] | undefined,
): PathVariables {
  // Without a prototype, `{__proto__}` is a name like any other.
  const variables: Record<string, string> = Object.create(null)
  for (const { name, index, before, after } of captures) {
    const part = parts[places?.[index] ?? index] ?? ''
    variables[name] = decodedText(part.slice(before, part.length - after))
  }
  return variables
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
 * ever extended: giving more to an earlier one could not help a later one. So the cost is at most parts × segments.
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
  return segment.kind === 'glob' ? matchesGlob(segment.text, part) : segment.text === part
}
