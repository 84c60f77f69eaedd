/** Rules as stores see them, and what is asked of them, for tests: what a test does not name is the plainest there is. */
import type { BucketGroup, Demand } from '../core/bucket-store.js'
import type { Band } from '../core/rule.js'

export const second = 1_000_000
/** A multiple of a second, a minute and an hour, so that their windows begin where the clock does. */
export const startMs = 1_800_000_000_000

export function band(given: Partial<Band> = {}): Band {
  const capacity = given.capacity ?? 10
  return {
    label: 'band',
    algorithm: 'TOKEN_BUCKET',
    refill: 'STEADY',
    capacity,
    refillTokens: capacity,
    windowTicks: second,
    ...given,
  }
}

export const group = (ruleId: string, bands: readonly Band[], given: Partial<BucketGroup> = {}): BucketGroup => ({
  ruleSetId: 'set',
  ruleId,
  generation: '1',
  permits: 1,
  bands,
  ...given,
})

export const demand = (rule: BucketGroup, key: string, given: Partial<Demand> = {}): Demand => ({
  group: rule,
  key,
  permits: 1,
  patience: 0,
  policy: 'REJECT',
  shadow: false,
  ...given,
})
