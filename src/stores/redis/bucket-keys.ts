import { cellsOf, kindOf } from '../../algorithms/index.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import { digestOfKey, escapeKeyPart, isLongKey, longestKey, specialInKey } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'

/** A key that needs no escaping and is short in UTF-8, where a character has at most four bytes. */
export const plainKey = /^[^:{}%\s\p{Cc}\p{Cs}]{1,32}$/u

/**
 * The first part of the Redis keys of a rate limit key. The whole Redis key of a bucket is
 * `<prefix>:{<key>}:<ruleSet>:<rule>:<generation>:<band>`. The rate limit key is the hash tag, so that all rules with the same
 * key share a cluster slot. Parts are escaped, so that different buckets never share a Redis key.
 */
export const bucketPrefix = (prefix: string, key: string): string =>
  `${prefix}:{${plainKey.test(key) ? key : hashTagOf(key)}}`

/** The hash tag of a key that is not plain: escaped, or its digest if it is long. */
export const hashTagOf = (key: string): string => (isLongKey(key) ? digestOfKey(key) : escaped(key))

/** How the buckets of a band are stored. */
export interface BandLayout {
  readonly band: Band
  /** The number of the algorithm in the script. */
  readonly kind: number
  /** True if a bucket is a log instead of a few numbers. */
  readonly isLog: boolean
  /** The Redis key of a bucket after its `bucketPrefix`. */
  readonly suffix: string
}

export type GroupLayout = readonly BandLayout[]

/** The layout of each group that has been used. */
export type Layouts = WeakMap<BucketGroup, GroupLayout>

/** Computes the layout of a group that is used for the first time. */
export function addLayout(layouts: Layouts, group: BucketGroup): GroupLayout {
  const layout = newLayout(group)
  layouts.set(group, layout)
  return layout
}

/**
 * Bands of an override are identified by their index, because the generation of the override already identifies the bands.
 */
function newLayout({ ruleSetId, ruleId, generation, bands, insteadOf }: BucketGroup): GroupLayout {
  const start = `:${escaped(ruleSetId)}:${escaped(ruleId)}:${escaped(generation)}`
  return bands.map((band, index) => ({
    band,
    kind: kindOf(band),
    isLog: cellsOf(band) === undefined,
    suffix: `${start}:${insteadOf === undefined ? escaped(band.label) : index}`,
  }))
}

export const escaped = escapeKeyPart

const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && !specialInKey.test(String.fromCharCode(byte)) ? 1 : 0,
)

/** True if these bytes are a key that is used unchanged: nothing must be escaped, and it is not too long. */
export function isPlainIdentity(bytes: Buffer, from: number, to: number): boolean {
  if (to === from || to - from > longestKey) return false
  for (let at = from; at < to; at++) if (plainBytes[bytes[at] as number] === 0) return false
  return true
}
