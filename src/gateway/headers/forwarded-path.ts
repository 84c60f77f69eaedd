import { withoutDots } from '../../core/matching/paths/spellings.js'

/**
 * The path that is matched, counted and forwarded, so that the upstream reads the path that was matched: dot segments
 * resolved, repeated slashes collapsed, backslashes turned into slashes, and one spelling for each character. Letter case, a
 * slash at the end and the escapes of reserved characters stay as the client sent them.
 */
export function forwardedPath(path: string): string {
  if (plainPath.test(path)) return path
  const resolved = withoutDots(path.replace(/%[0-9A-Fa-f]{2}|[^\w\-.~!$&'()*+,;=:@/]/g, spelled))
  return resolved !== '/' && /[/\\](?:\.|%2e){0,2}$/i.test(path) ? `${resolved}/` : resolved
}

/** Segments that do not start with a dot, without escapes. Nothing to change. */
const plainPath = /^(?:\/[\w\-~!$&'()*+,;=:@][\w\-.~!$&'()*+,;=:@]*)*\/?$/

/** `node:http` decodes the request target as latin1, so a character is a byte. */
function spelled(found: string): string {
  if (found === '\\') return '/'
  const code = found.length === 3 ? Number.parseInt(found.slice(1), 16) : found.charCodeAt(0)
  const character = String.fromCharCode(code)
  if (/[\w\-.~]/.test(character)) return character
  return `%${code.toString(16).toUpperCase().padStart(2, '0')}`
}

/**
 * True if some upstreams find dot segments in a forwarded path: those that decode `%2F` and `%5C`, or cut `;parameters` off.
 * They would leave the path that was matched.
 */
export function hasHiddenDots(path: string): boolean {
  return /(?:\/|%2F|%5C)\.\.?(?:$|;|%3B|\/|%2F|%5C)/.test(path)
}
