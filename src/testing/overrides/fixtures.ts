/** Fixtures that the parts of the override contract share. */
import assert from 'node:assert/strict'
import type { BucketGroup, BucketStore } from '../../core/bucket-store.js'
import type { OverrideId, OverrideStorage, OverrideTerms } from '../../core/overrides/override-storage.js'
import type { Band } from '../../core/rule.js'
import { band, group } from '../fixtures.js'
import type { ManualClock } from '../manual-clock.js'

/** Registers a test with an empty store. */
export type WithStore = (title: string, test: (store: BucketStore, clock: ManualClock) => Promise<void>) => void

/** A band whose label contains its capacity, so that bands with different capacities have different labels. */
export const bandOf = (capacity: number, fields: Partial<Band> = {}): Band =>
  band({ label: `${capacity}:band`, capacity, ...fields })

export const overridable = (ruleId: string, bands: readonly Band[], fields: Partial<BucketGroup> = {}): BucketGroup =>
  group(ruleId, bands, { hasOverrides: true, ...fields })

export const limit = (...bands: Band[]): OverrideTerms => ({
  action: 'LIMIT',
  bands,
  expiresAtMs: undefined,
  note: undefined,
})
export const allow: OverrideTerms = { action: 'ALLOW', bands: [], expiresAtMs: undefined, note: undefined }
export const deny: OverrideTerms = { ...allow, action: 'DENY' }

export const nameOf = ({ ruleSetId, ruleId }: BucketGroup, key: string, isRange = false): OverrideId => ({
  ruleSetId,
  ruleId,
  key,
  isRange,
})

export const bookOf = ({ overrides }: BucketStore): OverrideStorage =>
  overrides ?? assert.fail('The store does not support overrides.')
