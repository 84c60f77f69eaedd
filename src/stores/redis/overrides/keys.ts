import type { BucketGroup } from '../../../core/bucket-store.js'
import { hashSlot } from '../../../redis/client/hash-slot.js'
import { slotTag } from '../../../redis/client/slot-tags.js'
import { bucketPrefix, escaped } from '../bucket-keys.js'

export const slotCount = 16_384

export type RuleRef = Pick<BucketGroup, 'ruleSetId' | 'ruleId'>

/**
 * The hash with the override of a rate limit key: `<prefix>:{<tag>}:overrides:<ruleSet>:<rule>:<generation>`. All keys of a
 * slot share one small hash, which Redis stores compactly as a list. The tag places the hash in the slot of the buckets, so
 * that one call on a cluster reads both.
 */
export const overrideHash = (prefix: string, rule: RuleRef, generation: number, key: string): string =>
  hashOfSlot(prefix, rule, generation, slotOfKey(prefix, key))

/** The slot of the buckets of a rate limit key. */
export const slotOfKey = (prefix: string, key: string): number => hashSlot(bucketPrefix(prefix, key))

export const hashOfSlot = (prefix: string, { ruleSetId, ruleId }: RuleRef, generation: number, slot: number): string =>
  `${prefix}:{${slotTag(slot)}}:overrides:${escaped(ruleSetId)}:${escaped(ruleId)}:${generation}`

/** The string that changes with every edit of an override. On a cluster there is one per slot, because a call covers one slot. */
export const editKey = (prefix: string, slot: number | undefined): string =>
  `${prefix}:{${slot === undefined ? 'overrides' : slotTag(slot)}}:edit`

/**
 * A hash with the active generation of each rule (`ruleField`), the generation that is being imported (`importing <ruleField>`),
 * the number of the newest generation (`next`), and a counter that grows with every change of an address range (`ranges`).
 */
export const activeKey = (prefix: string): string => `${prefix}:{overrides}:live`

/** A hash with the overrides of all address ranges, by `rangeField`. */
export const rangesKey = (prefix: string): string => `${prefix}:{overrides}:ranges`

/** A sorted set of the generations to delete unless they become active, by the time of their last sign of life in ms. */
export const cleanupKey = (prefix: string): string => `${prefix}:{overrides}:owed`

export const ruleField = ({ ruleSetId, ruleId }: RuleRef): string => JSON.stringify([ruleSetId, ruleId])

export const rangeField = ({ ruleSetId, ruleId }: RuleRef, generation: number, range: string): string =>
  JSON.stringify([ruleSetId, ruleId, generation, range])

export function parseRangeField(field: string): { rule: RuleRef; generation: number; range: string } {
  const [ruleSetId, ruleId, generation, range] = JSON.parse(field) as [string, string, number, string]
  return { rule: { ruleSetId, ruleId }, generation, range }
}
