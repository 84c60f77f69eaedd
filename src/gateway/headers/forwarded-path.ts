import { withoutDots } from '../../core/matching/paths/spellings.js'

/**
 * Normalises a path. The result is matched, limited and forwarded, so that the upstream sees the path that was matched: dot
 * segments are resolved, repeated slashes collapsed, backslashes become slashes, and each character has one spelling. Letter
 * case, a trailing slash and escapes of reserved characters are preserved.
 */
export function forwardedPath(path: string): string {
  if (plainPath.test(path)) return path
  const resolved = withoutDots(path.replace(/%[0-9A-Fa-f]{2}|[^\w\-.~!$&'()*+,;=:@/]/g, spelled))
  return resolved !== '/' && /[/\\](?:\.|%2e){0,2}$/i.test(path) ? `${resolved}/` : resolved
}

/** A path that is already normalised: no escapes, and no segment starts with a dot. */
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
 * True if an upstream that decodes `%2F` and `%5C`, or removes `;parameters`, would find dot segments in a forwarded path. It
 * would then serve a path that was not matched.
 */
export function hasHiddenDots(path: string): boolean {
  return /(?:\/|%2F|%5C)\.\.?(?:$|;|%3B|\/|%2F|%5C)/.test(path)
}
