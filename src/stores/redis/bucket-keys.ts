import type { BucketGroup } from '../../core/bucket-store.js'
import { digestOfKey, escapeKeyPart, isLongKey, specialInKey } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'

/** Maximum length of a key in bytes; longer keys are replaced by a digest. */
const longestIdentity = 128

/**
 * The Redis key of a bucket: `<prefix>:{<key>}:<ruleSet>:<rule>:<generation>:<band>`. The rate limit key is the hash tag, so
 * that all rules with the same key share a cluster slot. Parts are escaped, so that different buckets never share a key.
 */
export const bucketKey = (prefix: string, key: string, suffix: string): string =>
  `${prefix}:{${identityOf(key)}}${suffix}`

/**
 * The part after the hash tag, which is the same for all buckets of a band. Bands of an override are identified by their
 * index, because the generation of the override already identifies the bands.
 */
export const keySuffix = (group: BucketGroup, { label }: Pick<Band, 'label'>, index: number): string =>
  `${groupSuffix(group)}:${group.insteadOf === undefined ? escaped(label) : index}`

const groupSuffix = ({ ruleSetId, ruleId, generation }: BucketGroup): string =>
  `:${escaped(ruleSetId)}:${escaped(ruleId)}:${escaped(generation)}`

const identityOf = (key: string): string => (isLongKey(key) ? digestOfKey(key) : escaped(key))

export const escaped = escapeKeyPart

const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && !specialInKey.test(String.fromCharCode(byte)) ? 1 : 0,
)

/** True if these bytes are a key that is used unchanged: nothing must be escaped, and it is not too long. */
export function isPlainIdentity(bytes: Buffer, from: number, to: number): boolean {
  if (to === from || to - from > longestIdentity) return false
  for (let at = from; at < to; at++) if (plainBytes[bytes[at] as number] === 0) return false
  return true
}
