import { canonicalCharacters, canonicalPath, foldPath } from './characters.js'
import { otherReadings, withoutDots } from './spellings.js'

/**
 * One spelling per path, so that another spelling is not a way around a limit: query and fragment cut off, characters
 * decoded that a segment may contain, dot segments removed, backslashes read as slashes, repeated slashes collapsed, no
 * slash at the end, and letters folded unless case matters.
 */
export function normalisePath(path: string | null | undefined, caseSensitive = false): string {
  if (path === undefined || path === null) return '/'
  return normalSpelling(path, caseSensitive) ?? normalised(pathOnly(path), caseSensitive)
}

/**
 * The normalised path; or, if servers disagree about its meaning, all readings of it, the normalised one first. A limit
 * applies if it applies to one of them.
 */
export function readPath(path: string | null | undefined, caseSensitive = false): string | readonly string[] {
  if (path === undefined || path === null) return '/'
  const normal = normalSpelling(path, caseSensitive)
  if (normal !== undefined) return normal
  const text = pathOnly(path)
  const first = normalised(text, caseSensitive)
  const others = otherReadings(text, caseSensitive)
  return others === undefined || others.size === 1 ? first : [...new Set([first, ...others])]
}

const normalised = (text: string, caseSensitive: boolean): string => withoutDots(canonicalPath(text, caseSensitive))

const slash = 0x2f
const dot = 0x2e
const percent = 0x25
const question = 0x3f
const hash = 0x23
const backslash = 0x5c

/** Kinds of characters, by their effect on the spelling of a path. */
const plain = 0
const upper = 1
const delimiter = 2
const unusual = 3

const meaning = new Uint8Array(128).fill(unusual)
for (const code of Buffer.from("abcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()+,=:@")) meaning[code] = plain
for (const code of Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ')) meaning[code] = upper
for (const code of [slash, percent, question, hash]) meaning[code] = delimiter

/** Most requests are spelt normally: they pay for one scan and no copy. Undefined if more than letter case is to change. */
function normalSpelling(path: string, caseSensitive: boolean): string | undefined {
  if (path.charCodeAt(0) !== slash) return undefined
  const { length } = path
  let hasUpper = false
  let hasEscape = false
  let end = 0
  for (; end < length; end++) {
    const code = path.charCodeAt(end)
    const means = code < 128 ? meaning[code] : unusual
    if (means === plain) continue
    if (means === upper) hasUpper = true
    else if (means === unusual) return undefined
    else if (code === slash) {
      if (!isSegmentAt(path, end + 1)) return undefined
    } else if (code === percent) {
      if (!isOnlySpelling(path, end, caseSensitive)) return undefined
      hasEscape = true
      end += 2
    } else break
  }
  const normal = end === length ? path : path.slice(0, end)
  if (!hasUpper || caseSensitive) return normal
  return hasEscape ? foldPath(normal) : normal.toLowerCase()
}

/** Whether something other than an empty or a dot segment starts here; the root has no segment at all. */
function isSegmentAt(path: string, start: number): boolean {
  let i = start
  while (i < start + 2 && path.charCodeAt(i) === dot) i++
  if (i === path.length) return i === 1
  const code = path.charCodeAt(i)
  if (code === question || code === hash) return i === 1
  return code !== slash
}

/** Whether an escape starts here that is the only normal spelling of its character and that no server reads as a slash. */
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

/** Whether an escape starts here, in capitals as normalised paths spell them. */
export function isEscapeAt(path: string, start: number): boolean {
  return path.charCodeAt(start) === percent && hexAt(path, start + 1) >= 0 && hexAt(path, start + 2) >= 0
}

function hexAt(path: string, index: number): number {
  const code = path.charCodeAt(index)
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  return code >= 0x41 && code <= 0x46 ? code - 0x37 : -1
}

/** Without query and fragment, and without what a client of a proxy writes before the path: `http://host`. */
function pathOnly(target: string): string {
  const end = target.search(/[?#]/)
  const text = end === -1 ? target : target.slice(0, end)
  return text.charCodeAt(0) === slash ? text : text.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/\\]*/i, '')
}
