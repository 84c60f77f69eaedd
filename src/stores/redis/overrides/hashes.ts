import type { BucketGroup } from '../../../core/bucket-store.js'
import { hashSlot } from '../../../redis/client/hash-slot.js'
import { slotTag } from '../../../redis/client/slot-tags.js'
import { bucketKey, escaped } from '../bucket-keys.js'

export const slots = 16_384

type Rule = Pick<BucketGroup, 'ruleSetId' | 'ruleId'>

/**
 * Where the override of an identity is: `<prefix>:{<tag>}:overrides:<ruleSet>:<rule>:<generation>`. Those of all identities of
 * a slot share one small hash, which Redis keeps as compactly as a list; the tag puts it into the same slot, so that a
 * decision on a cluster finds the override where the buckets are.
 */
export const overrideHash = (prefix: string, rule: Rule, generation: number, key: string): string =>
  hashName(prefix, rule, generation, identitySlot(prefix, key))

/** The slot of the buckets of an identity. */
export const identitySlot = (prefix: string, key: string): number => hashSlot(bucketKey(prefix, key, ''))

/** All that may hold overrides of a rule, one for each slot. */
export function* overrideHashes(prefix: string, rule: Rule, generation: number): Generator<string> {
  for (let slot = 0; slot < slots; slot++) yield hashName(prefix, rule, generation, slot)
}

export const hashName = (prefix: string, { ruleSetId, ruleId }: Rule, generation: number, slot: number): string =>
  `${prefix}:{${slotTag(slot)}}:overrides:${escaped(ruleSetId)}:${escaped(ruleId)}:${generation}`

/**
 * What changes with every edit of an override: one for all of them, or on a cluster, where a call is about one slot, one for
 * each slot.
 */
export const editKey = (prefix: string, slot: number | undefined): string =>
  `${prefix}:{${slot === undefined ? 'overrides' : slotTag(slot)}}:edit`
