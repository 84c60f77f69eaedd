import type { BucketGroup } from '../../core/bucket-store.js'
import { digestOfKey, escapeKeyPart, isLongKey, specialInKey } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'

/** Plain identities have at most so many bytes; longer ones are replaced by their digest. */
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

const identityOf = (key: string): string => (isLongKey(key) ? digestOfKey(key) : escaped(key))

export const escaped = escapeKeyPart

const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && !specialInKey.test(String.fromCharCode(byte)) ? 1 : 0,
)

/** Whether these bytes are an identity that is named as it is: nothing in it has to be escaped, and it is not too long. */
export function isPlainIdentity(bytes: Buffer, from: number, to: number): boolean {
  if (to === from || to - from > longestIdentity) return false
  for (let at = from; at < to; at++) if (plainBytes[bytes[at] as number] === 0) return false
  return true
}
