import { type BucketGroup, newMemo } from '../../../core/bucket-store.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { OverrideTerms, StartingBalance } from '../../../core/overrides/override-book.js'
import type { Band } from '../../../core/rule.js'
import { limitDigest } from './value.js'

/** Stands for "no": it has no bucket, and a store does not count in it. */
const noBand: Band = {
  label: 'denied',
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 0,
  refillTokens: 1,
  windowTicks: 1,
}

/** The group that counts an identity with an override instead of its rule's. */
export function overriddenGroup(group: BucketGroup, terms: OverrideTerms): BucketGroup {
  const { ruleSetId, ruleId, generation, permits } = group
  const { action, bands, balance } = terms
  const common = { ruleSetId, ruleId, permits, insteadOf: group, memo: newMemo() }
  if (action !== 'LIMIT') return { ...common, generation, bands: action === 'DENY' ? [noBand] : [], listed: action }
  const counted = bands.length > 0 ? bands : group.bands
  return {
    ...common,
    generation: `${generation}.${limitDigest(terms)}`,
    bands: balance === undefined ? counted : counted.map((band) => begun(band, balance)),
  }
}

const begun = (band: Band, { permits, atMs }: StartingBalance): Band =>
  permits >= band.capacity
    ? { ...band }
    : { ...band, spent: { permits: band.capacity - permits, at: atMs * ticksPerMs } }

/** Many identities have the same override, and the same one again and again. */
const mostGroups = 1_000

/** Remembers the groups it has made, so that what is noted of a group is found again. */
export class OverriddenGroups {
  readonly #groups = new WeakMap<BucketGroup, Map<string, BucketGroup>>()

  /** `name` is the same exactly if the terms are. */
  of(group: BucketGroup, name: string, terms: () => OverrideTerms): BucketGroup {
    let known = this.#groups.get(group)
    if (known === undefined) {
      known = new Map()
      this.#groups.set(group, known)
    }
    const found = known.get(name)
    if (found !== undefined) return found
    const made = overriddenGroup(group, terms())
    if (known.size >= mostGroups) known.delete(known.keys().next().value as string)
    known.set(name, made)
    return made
  }
}
