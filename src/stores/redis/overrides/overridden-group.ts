import { takeHolds } from '../../../core/algorithm-traits.js'
import { type BucketGroup, newMemo } from '../../../core/bucket-store.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { OverrideTerms, StartingBalance } from '../../../core/overrides/override-storage.js'
import type { Band } from '../../../core/rule.js'

/** The band of a denied key. It has no bucket; stores do not charge it. */
const deniedBand: Band = {
  label: 'denied',
  algorithm: 'TOKEN_BUCKET',
  refill: 'STEADY',
  capacity: 0,
  refillTokens: 1,
  windowTicks: 1,
}

/**
 * Creates the group that replaces the group of the rule for keys with this override. `digestOf` identifies the limit.
 */
export function overriddenGroup(
  group: BucketGroup,
  terms: OverrideTerms,
  digestOf: (terms: OverrideTerms) => string,
): BucketGroup {
  const { ruleSetId, ruleId, generation, permits, definitions, ban } = group
  const { action, balance } = terms
  const common = { ruleSetId, ruleId, permits, insteadOf: group, memo: newMemo() }
  if (action !== 'LIMIT') return { ...common, generation, bands: action === 'DENY' ? [deniedBand] : [], listed: action }
  const bands = terms.bands.length > 0 ? terms.bands.map((band) => withRuleCalendar(band, group)) : group.bands
  return {
    ...common,
    ban,
    // Bands of its own do not change with the rule.
    definitions: terms.bands.length > 0 ? undefined : definitions,
    generation: `${generation}.${digestOf(terms)}`,
    takesHolds: takeHolds(bands),
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
