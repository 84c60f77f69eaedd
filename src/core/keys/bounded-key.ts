/** Clients choose keys of any length. Everything that keeps keys in memory keeps these bounded forms of them. */
import { sha256 } from '../runtime/sha256.js'
import { utf8Length } from '../runtime/utf8.js'

/** Keys with more UTF-8 bytes than this are replaced by a digest. */
export const longestKey = 128

/** A UTF-16 code unit takes at most three bytes, so the bytes of keys up to this length need not be counted. */
const shortKey = Math.floor(longestKey / 3)

const digestMark = '%sha256-'

/** True if the key has more than 128 bytes in UTF-8. */
export const isLongKey = (key: string): boolean =>
  key.length > shortKey && (key.length > longestKey || utf8Length(key) > longestKey)

/** The digest that replaces a long key. */
export const digestOfKey = (key: string): string => `${digestMark}${sha256(escapeKeyPart(key), 'base64url')}`

/**
 * Returns the key itself, or its digest if the key is long. Different keys never give the same result, because a short key
 * that looks like a digest is digested too. Apply this exactly once per key.
 */
export function boundedKey(key: string): string {
  if (key.length <= shortKey && key.charCodeAt(0) !== percent) return key
  return isLongKey(key) || key.startsWith(digestMark) ? digestOfKey(key) : key
}

const percent = 0x25

/** V8 copies substrings shorter than this instead of creating a slice. */
const minSliceLength = 13

/**
 * Copies a string so that it shares no memory with another one. V8 implements a substring (a path segment, a header entry) as
 * a slice that points into the original string and keeps all of it in memory.
 */
export const ownText = (text: string): string =>
  text.length < minSliceLength ? text : (JSON.parse(JSON.stringify(text)) as string)

/** Separators, braces, white space, control characters, the escape character, and lone surrogates, which UTF-8 cannot encode. */
export const specialInKey = /[:{}%\s\p{Cc}]|\p{Cs}/u

const specials = new RegExp(specialInKey, 'gu')

/** Escapes a part of a Redis key so that it contains no separator. */
export function escapeKeyPart(part: string): string {
  // Redis ignores an empty hash tag. No other part becomes a single escape character.
  if (part === '') return '%'
  let escaped = ''
  let from = 0
  for (let at = 0; at < part.length; at++) {
    const code = part.charCodeAt(at)
    // Surrogates are escaped only if they are not pairs.
    if (code >= 0x80) return part.replace(specials, escapeCharacter)
    const replacement = asciiEscapes[code] as string
    if (replacement === '') continue
    escaped += part.slice(from, at) + replacement
    from = at + 1
  }
  return from === 0 ? part : escaped + part.slice(from)
}

function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x80 ? `%${code.toString(16).padStart(2, '0').toUpperCase()}` : `%u${code.toString(16).toUpperCase()}`
}

/** By code; empty for a character that is not escaped. Keys with a colon are frequent, and a regular expression takes ten times as long. */
const asciiEscapes: readonly string[] = Array.from({ length: 0x80 }, (_, code) => {
  const character = String.fromCharCode(code)
  return specialInKey.test(character) ? escapeCharacter(character) : ''
})
