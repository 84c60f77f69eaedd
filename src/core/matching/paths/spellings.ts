import { canonicalPath } from './characters.js'

/**
 * How servers read a path about which they disagree. Undefined for a path that has only one reading, which is nearly
 * every path. A limit that applies to one reading applies to the request, because nothing here knows which server reads it.
 */
export function otherReadings(path: string, caseSensitive: boolean): ReadonlySet<string> | undefined {
  if (!/[;\\]|%(?:2f|5c|3b|2e)|\/\.|^\/\//i.test(path)) return undefined
  // Browsers and URL parsers take a backslash for a slash, routers do not, and some servers decode `%2F` and `%5C` first.
  const text = canonicalPath(path, caseSensitive)
  const literal = path.includes('\\') ? canonicalPath(path.replaceAll('\\', '%5C'), caseSensitive) : text
  const decoded = text.replace(/%2F|%5C/g, '/')
  const readings = new Set([text, literal, decoded].map(withDots))
  // URL parsers read `//host/path`. Fastify may end a path at the first `;`.
  const ends = [withoutHost(text), withoutHost(decoded), literal.replace(/;.*/, '')]
  for (const one of new Set([text, literal, decoded, ...ends])) {
    // Java servers cut `;parameters` off each segment before they remove dot segments.
    for (const cut of new Set([one, one.replace(/;[^/]*/g, '')])) {
      readings.add(withoutDots(cut))
      // Others collapse slashes first, so that `/a//../b` is `/b` for them and `/a/b` for URL parsers.
      if (cut.includes('//')) readings.add(withoutDots(cut.replace(/\/{2,}/g, '/')))
    }
  }
  return readings
}

/** Dot segments remove what is before them, also if that is an empty segment; then empty segments are removed. */
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
