import { canonicalPath } from './characters.js'

/**
 * All interpretations of a path that servers read differently. Undefined for the vast majority of paths, which have only one
 * interpretation. A limit that applies to any of them applies to the request, because the upstream is unknown here.
 */
export function otherInterpretations(path: string, caseSensitive: boolean): ReadonlySet<string> | undefined {
  if (!/[;\\]|%(?:2f|5c|3b|2e)|\/\.|^\/\//i.test(path)) return undefined
  // Browsers and URL parsers treat a backslash as a slash, routers do not, and some servers decode `%2F` and `%5C` first.
  const text = canonicalPath(path, caseSensitive)
  const literal = path.includes('\\') ? canonicalPath(path.replaceAll('\\', '%5C'), caseSensitive) : text
  const decoded = text.replace(/%2F|%5C/g, '/')
  const interpretations = new Set([text, literal, decoded].map(withDots))
  // URL parsers read `//host/path` as a host and a path. Fastify may end a path at the first `;`.
  const truncated = [withoutHost(text), withoutHost(decoded), literal.replace(/;.*/, '')]
  for (const candidate of new Set([text, literal, decoded, ...truncated])) {
    // Java servers remove `;parameters` from each segment before they remove dot segments.
    for (const stripped of new Set([candidate, candidate.replace(/;[^/]*/g, '')])) {
      interpretations.add(withoutDots(stripped))
      // Some servers collapse slashes first, so that `/a//../b` is `/b` for them and `/a/b` for URL parsers.
      if (stripped.includes('//')) interpretations.add(withoutDots(stripped.replace(/\/{2,}/g, '/')))
    }
  }
  return interpretations
}

/** Removes dot segments together with the segment before `..`, which may be empty, and then all empty segments. */
export function withoutDots(text: string): string {
  const kept: string[] = []
  for (const segment of text.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  return joined(kept)
}

const withoutHost = (text: string): string => text.replace(/^\/{2,}[^/]*/, '')

const withDots = (text: string): string => joined(text.split('/'))

function joined(segments: readonly string[]): string {
  let path = ''
  for (const segment of segments) if (segment !== '') path += `/${segment}`
  return path || '/'
}
