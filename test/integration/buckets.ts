/** Rules as stores see them, and what may be asked of them. */
import type { BucketGroup, Demand } from '../../src/core/bucket-store.js'
import type { Band } from '../../src/core/rule.js'

export const second = 1_000_000
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

export const group = (ruleId: string, bands: readonly Band[]): BucketGroup => ({
  ruleSetId: 'set',
  ruleId,
  generation: '1',
  permits: 1,
  bands,
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

/** From the environment to replay a run that has failed, otherwise a new one. */
export const randomSeed = (): number => Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 2 ** 31)
