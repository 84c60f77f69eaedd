/** Keys come from clients and may be long. Whatever remembers keys remembers these forms of them, so that its memory is bounded. */
import { createHash } from 'node:crypto'

/** A key of more bytes than this is replaced by its digest. */
export const longestKey = 128

const digestMark = '%sha256-'

/** True if the key has more than 128 bytes in UTF-8. */
export const isLongKey = (key: string): boolean =>
  // A code unit has at most three bytes, so short keys need not be counted.
  key.length * 3 > longestKey && (key.length > longestKey || Buffer.byteLength(key) > longestKey)

/** What stands for a long key. */
export const digestOfKey = (key: string): string =>
  `${digestMark}${createHash('sha256').update(escapeKeyPart(key)).digest('base64url')}`

/**
 * The key as a map in memory should have it: long keys are replaced by their digest. No two keys have the same form, because
 * a short key that looks like a digest is replaced too. So this must be applied exactly once.
 */
export const boundedKey = (key: string): string =>
  isLongKey(key) || (key.charCodeAt(0) === percent && key.startsWith(digestMark)) ? digestOfKey(key) : key

const percent = 0x25

/** A shorter text is never a slice. */
const shortestSlice = 13

/**
 * A copy that shares no memory with another text. V8 makes a slice (a segment of a path, an entry of a header) point into the
 * whole text, which would stay in memory with it.
 */
export const ownText = (text: string): string =>
  text.length < shortestSlice ? text : (JSON.parse(JSON.stringify(text)) as string)

/** Separators, braces, controls, the escape character itself, and halves of characters, which have no bytes of their own. */
export const specialInKey = /[:{}%\s\p{Cc}]|\p{Cs}/u

const specials = new RegExp(specialInKey, 'gu')

/** Escapes a part of a name such that it holds no separator. */
export function escapeKeyPart(part: string): string {
  // An empty part would make an empty hash tag, which is none; nothing else becomes a single escape character.
  if (part === '') return '%'
  return specialInKey.test(part) ? part.replace(specials, escapeCharacter) : part
}

function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x80 ? `%${code.toString(16).padStart(2, '0').toUpperCase()}` : `%u${code.toString(16).toUpperCase()}`
}
