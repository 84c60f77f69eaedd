import { createHash } from 'node:crypto'
import type { BucketGroup } from '../core/bucket-store.js'
import type { Band } from '../core/rule.js'

/** An identity of more bytes than this is replaced by its digest. */
const longestIdentity = 128

/**
 * The name of a bucket: `<prefix>:{<identity>}:<ruleSet>:<rule>:<generation>:<band>`. The identity is the hash tag, so that
 * all rules that count the same identity share a slot of a cluster. Parts are escaped, so that no two tuples share a name.
 */
export const bucketKey = (prefix: string, key: string, suffix: string): string =>
  `${prefix}:{${identityOf(key)}}${suffix}`

/**
 * What follows the identity; the same for all buckets of a band. Those of an override are known by their number: its
 * generation says which bands they are.
 */
export const keySuffix = (group: BucketGroup, { label }: Pick<Band, 'label'>, index: number): string =>
  `${groupSuffix(group)}:${group.insteadOf === undefined ? escaped(label) : index}`

/** The same for all buckets of a group. */
const groupSuffix = ({ ruleSetId, ruleId, generation }: BucketGroup): string =>
  `:${escaped(ruleSetId)}:${escaped(ruleId)}:${escaped(generation)}`

function identityOf(key: string): string {
  // A character has at most three bytes, so short ones need not be counted.
  const isLong = key.length * 3 > longestIdentity && Buffer.byteLength(key) > longestIdentity
  if (isLong) return `%sha256-${createHash('sha256').update(escaped(key)).digest('base64url')}`
  return escaped(key)
}

/** Separators, braces, controls, the escape character itself, and halves of characters, which have no bytes of their own. */
const special = /[:{}%\s\p{Cc}]|\p{Cs}/u

const specials = new RegExp(special, 'gu')

export function escaped(part: string): string {
  // An empty part would make an empty hash tag, which is none; nothing else becomes a single escape character.
  if (part === '') return '%'
  return special.test(part) ? part.replace(specials, escapeCharacter) : part
}

function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x80 ? `%${code.toString(16).padStart(2, '0').toUpperCase()}` : `%u${code.toString(16).toUpperCase()}`
}

const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && !special.test(String.fromCharCode(byte)) ? 1 : 0,
)

/** Whether these bytes are an identity that is named as it is: nothing in it has to be escaped, and it is not too long. */
export function isPlainIdentity(bytes: Buffer, from: number, to: number): boolean {
  if (to === from || to - from > longestIdentity) return false
  for (let at = from; at < to; at++) if (plainBytes[bytes[at] as number] === 0) return false
  return true
}
