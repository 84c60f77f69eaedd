import { utf8 } from '../../runtime/utf8.js'
import { canonicalCharacters, canonicalPath, foldPath } from './characters.js'
import { otherInterpretations, withoutDots } from './spellings.js'

/**
 * Normalises a path, so that another spelling of it does not bypass a limit. Removes the query, the fragment, dot segments
 * and a trailing slash, decodes characters that are legal in a segment, turns backslashes into slashes, collapses repeated
 * slashes, and folds letter case unless `caseSensitive`.
 */
export function normalisePath(path: string | null | undefined, caseSensitive = false): string {
  if (path === undefined || path === null) return '/'
  return normalSpelling(path, caseSensitive) ?? normalised(pathOnly(path), caseSensitive)
}

/**
 * Returns the normalised path. If servers interpret the path differently, returns all interpretations, the normalised path
 * first. A limit applies to the request if it applies to one of them.
 */
export function interpretPath(path: string | null | undefined, caseSensitive = false): string | readonly string[] {
  if (path === undefined || path === null) return '/'
  const normal = normalSpelling(path, caseSensitive)
  if (normal !== undefined) return normal
  const text = pathOnly(path)
  const first = normalised(text, caseSensitive)
  const alternatives = otherInterpretations(text, caseSensitive)
  return alternatives === undefined || alternatives.size === 1 ? first : [...new Set([first, ...alternatives])]
}

const normalised = (text: string, caseSensitive: boolean): string => withoutDots(canonicalPath(text, caseSensitive))

const slash = 0x2f
const dot = 0x2e
const percent = 0x25
const question = 0x3f
const hash = 0x23
const backslash = 0x5c

/** Character classes by their effect on normalisation. */
const plain = 0
const upper = 1
const delimiter = 2
const unusual = 3

const classOf = new Uint8Array(128).fill(unusual)
for (const code of utf8("abcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()+,=:@")) classOf[code] = plain
for (const code of utf8('ABCDEFGHIJKLMNOPQRSTUVWXYZ')) classOf[code] = upper
for (const code of [slash, dot, percent, question, hash]) classOf[code] = delimiter

/** Fast path for most requests: one scan and no copy. Returns undefined if normalisation has to change more than letter case. */
function normalSpelling(path: string, caseSensitive: boolean): string | undefined {
  if (path.charCodeAt(0) !== slash) return undefined
  const { length } = path
  let hasUpper = false
  let hasEscape = false
  let previous = slash
  let end = 1
  for (; end < length; end++) {
    const code = path.charCodeAt(end)
    const characterClass = code < 128 ? classOf[code] : unusual
    if (characterClass !== plain) {
      if (characterClass === upper) hasUpper = true
      else if (characterClass === unusual) return undefined
      else if (code === slash) {
        if (previous === slash) return undefined
      } else if (code === dot) {
        if (previous === slash && isDotSegmentAt(path, end)) return undefined
      } else if (code === percent) {
        if (!isOnlySpelling(path, end, caseSensitive)) return undefined
        hasEscape = true
        end += 2
      } else break
    }
    previous = code
  }
  if (previous === slash && end > 1) return undefined
  const normal = end === length ? path : path.slice(0, end)
  if (!hasUpper || caseSensitive) return normal
  return hasEscape ? foldPath(normal) : normal.toLowerCase()
}

/** True if the dot at `start`, the first character of its segment, is one of a `.` or `..` segment. */
function isDotSegmentAt(path: string, start: number): boolean {
  const end = path.charCodeAt(start + 1) === dot ? start + 2 : start + 1
  if (end === path.length) return true
  const code = path.charCodeAt(end)
  return code === slash || code === question || code === hash
}

/** True if the escape at `start` is the canonical form of its character, and no server reads it as a slash. */
function isOnlySpelling(path: string, start: number, caseSensitive: boolean): boolean {
  if (!isEscapeAt(path, start)) return false
  const code = hexAt(path, start + 1) * 16 + hexAt(path, start + 2)
  return code < 128 ? isKeptEscape[code] === 1 : caseSensitive
}

const isKeptEscape = new Uint8Array(128)
for (let code = 0; code < 128; code++) {
  const triplet = `%${code.toString(16).toUpperCase().padStart(2, '0')}`
  isKeptEscape[code] = Number(canonicalCharacters(triplet) === triplet && code !== slash && code !== backslash)
}

/** True if a percent escape with upper-case digits, as in normalised paths, starts at `start`. */
export function isEscapeAt(path: string, start: number): boolean {
  return path.charCodeAt(start) === percent && hexAt(path, start + 1) >= 0 && hexAt(path, start + 2) >= 0
}

function hexAt(path: string, index: number): number {
  const code = path.charCodeAt(index)
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  return code >= 0x41 && code <= 0x46 ? code - 0x37 : -1
}

/** Removes the query, the fragment, and the origin of an absolute-form target (`http://host/path`), which proxies receive. */
function pathOnly(target: string): string {
  const path = withoutOrigin(target)
  const end = path.search(/[?#]/)
  return end === -1 ? path : path.slice(0, end)
}

/**
 * A request target without the `http://host` that clients of a proxy write before the path. If the host is empty
 * (`http:///host/path`), only the scheme is removed: URL parsers skip further slashes and parse the next part as the host.
 */
export const withoutOrigin = (target: string): string =>
  target.charCodeAt(0) === slash ? target : target.replace(/^[a-z][a-z0-9+.-]*:(?:\/\/[^/\\?#]+|(?=\/\/))/i, '')
