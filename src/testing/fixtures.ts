/** Test fixtures for bands, bucket groups and charges, with simple defaults. */
import { takeHolds } from '../core/algorithm-traits.js'
import type { BucketGroup, Charge } from '../core/bucket-store.js'
import type { Band } from '../core/rule.js'

export const second = 1_000_000
/** A multiple of a second, a minute and an hour, so that windows of these lengths start together with the clock. */
export const startMs = 1_800_000_000_000

export function band(fields: Partial<Band> = {}): Band {
  const capacity = fields.capacity ?? 10
  return {
    label: 'band',
    algorithm: 'TOKEN_BUCKET',
    refill: 'STEADY',
    capacity,
    refillTokens: capacity,
    windowTicks: second,
    ...fields,
  }
}

export const group = (ruleId: string, bands: readonly Band[], fields: Partial<BucketGroup> = {}): BucketGroup => ({
  ruleSetId: 'set',
  ruleId,
  generation: '1',
  permits: 1,
  bands,
  takesHolds: takeHolds(bands),
  ...fields,
})

export const chargeOf = (rule: BucketGroup, key: string, fields: Partial<Charge> = {}): Charge => ({
  group: rule,
  key,
  permits: 1,
  maxWaitTicks: 0,
  policy: 'REJECT',
  shadow: false,
  ...fields,
})
