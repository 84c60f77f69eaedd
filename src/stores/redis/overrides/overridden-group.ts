import { type BucketGroup, newMemo } from '../../../core/bucket-store.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { OverrideTerms, StartingBalance } from '../../../core/overrides/override-storage.js'
import type { Band } from '../../../core/rule.js'
import { limitDigest } from './encoding.js'

/** The band of a denied key. It has no bucket; stores do not charge it. */
const deniedBand: Band = {
  label: 'denied',
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 0,
  refillTokens: 1,
  windowTicks: 1,
}

/** Creates the group that replaces the group of the rule for keys with this override. */
export function overriddenGroup(group: BucketGroup, terms: OverrideTerms): BucketGroup {
  const { ruleSetId, ruleId, generation, permits } = group
  const { action, balance } = terms
  const common = { ruleSetId, ruleId, permits, insteadOf: group, memo: newMemo() }
  if (action !== 'LIMIT') return { ...common, generation, bands: action === 'DENY' ? [deniedBand] : [], listed: action }
  const bands = terms.bands.length > 0 ? terms.bands.map((band) => withRuleCalendar(band, group)) : group.bands
  return {
    ...common,
    generation: `${generation}.${limitDigest(terms)}`,
    bands: balance === undefined ? bands : bands.map((band) => withBalance(band, balance)),
  }
}

/** An encoded override names the band of the rule that has the calendar. */
function withRuleCalendar(band: Band, { bands }: BucketGroup): Band {
  if (band.calendarOf === undefined) return band
  const { calendar, windowTicks } = bands[Math.min(band.calendarOf, bands.length - 1)] as Band
  const { calendar: _, ...others } = band
  return { ...others, windowTicks, ...(calendar && { calendar }) }
}

const withBalance = (band: Band, { permits, atMs }: StartingBalance): Band =>
  permits >= band.capacity
    ? { ...band }
    : { ...band, spent: { permits: band.capacity - permits, at: atMs * ticksPerMs } }

const maxGroupsPerRule = 1_000

/** Caches overridden groups, because many keys share the same override. The memo of a group is then reused as well. */
export class OverriddenGroups {
  readonly #byRule = new WeakMap<BucketGroup, Map<string, BucketGroup>>()

  /** `id` identifies the terms: it is equal if and only if they are. */
  get(rule: BucketGroup, id: string, terms: () => OverrideTerms): BucketGroup {
    let groups = this.#byRule.get(rule)
    if (groups === undefined) {
      groups = new Map()
      this.#byRule.set(rule, groups)
    }
    const cached = groups.get(id)
    if (cached !== undefined) return cached
    const group = overriddenGroup(rule, terms())
    if (groups.size >= maxGroupsPerRule) groups.delete(groups.keys().next().value as string)
    groups.set(id, group)
    return group
  }
}
