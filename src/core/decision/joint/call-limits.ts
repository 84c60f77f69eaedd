import { algorithmTraits } from '../../algorithm-traits.js'
import { type BucketGroup, newMemo, withBands } from '../../bucket-store.js'
import { ticksUp } from '../../clock.js'
import { type Band, maxCapacity, maxLogCapacity } from '../../rule.js'
import type { Plan } from '../snapshot.js'
import type { CallLimit } from './joint-check.js'

/** Rule ids cannot contain parentheses, so no rule has this one. */
export const callLimitRule = '(limit)'

/** The number of different limits that are kept per rule. Callers choose them. */
const maxKept = 100

const keptByRule = new WeakMap<BucketGroup, Map<string, BucketGroup>>()
const keptByPlan = new WeakMap<Plan, Map<string, BucketGroup>>()

/** The group with the limit in place of its bands. Rules of the algorithm CONCURRENCY keep their bands, which have no window. */
export function groupWithLimit(group: BucketGroup, limit: CallLimit): BucketGroup {
  const [band] = group.bands
  if (band === undefined || group.takesHolds) return group
  return kept(keptByRule, group, limit, () => withBands(group, [limitedBand(band, limit)]))
}

/** The group of contexts to which no rule of the plan applies. Processes with the same limit share its buckets. */
export const groupOfLimit = (plan: Plan, limit: CallLimit): BucketGroup =>
  kept(keptByPlan, plan, limit, () => ({
    ruleSetId: plan.ruleSet.id,
    ruleId: callLimitRule,
    generation: `${limit.windowMs}`,
    permits: 1,
    bands: [limitedBand(plainBand, limit)],
    memo: newMemo(),
  }))

const plainBand: Band = {
  label: 'limit',
  algorithm: 'FIXED_WINDOW',
  refill: 'STEADY',
  capacity: 1,
  refillTokens: 1,
  windowTicks: 1,
}

/** Keeps the label and the algorithm, and therefore the bucket. */
function limitedBand({ label, algorithm, refill }: Band, { capacity, windowMs }: CallLimit): Band {
  const most = algorithmTraits[algorithm].keepsLog ? maxLogCapacity : maxCapacity
  const bounded = Math.min(capacity, most)
  return {
    label,
    algorithm,
    refill,
    capacity: bounded,
    refillTokens: Math.max(1, bounded),
    windowTicks: ticksUp(windowMs),
  }
}

function kept<Owner extends object>(
  all: WeakMap<Owner, Map<string, BucketGroup>>,
  owner: Owner,
  { capacity, windowMs }: CallLimit,
  make: () => BucketGroup,
): BucketGroup {
  let groups = all.get(owner)
  if (groups === undefined) {
    groups = new Map()
    all.set(owner, groups)
  }
  const name = `${capacity}/${windowMs}`
  let group = groups.get(name)
  if (group === undefined) {
    if (groups.size >= maxKept) groups.delete(groups.keys().next().value as string)
    group = make()
    groups.set(name, group)
  }
  return group
}
