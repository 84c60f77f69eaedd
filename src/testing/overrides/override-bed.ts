/** What the parts of the contract of overrides have in common. */
import assert from 'node:assert/strict'
import type { BucketGroup, BucketStore } from '../../core/bucket-store.js'
import type { OverrideBook, OverrideName, OverrideTerms } from '../../core/overrides/override-book.js'
import type { Band } from '../../core/rule.js'
import { band, group } from '../demands.js'
import type { ManualClock } from '../manual-clock.js'

/** Names a test, and gives it an empty store. */
export type WithStore = (title: string, test: (store: BucketStore, clock: ManualClock) => Promise<void>) => void

/** Labelled by its capacity, so that two of them are two bands. */
export const bandOf = (capacity: number, given: Partial<Band> = {}): Band =>
  band({ label: `${capacity}:band`, capacity, ...given })

export const overridable = (ruleId: string, bands: readonly Band[], given: Partial<BucketGroup> = {}): BucketGroup =>
  group(ruleId, bands, { hasOverrides: true, ...given })

export const limit = (...bands: Band[]): OverrideTerms => ({
  action: 'LIMIT',
  bands,
  expiresAtMs: undefined,
  note: undefined,
})
export const allow: OverrideTerms = { action: 'ALLOW', bands: [], expiresAtMs: undefined, note: undefined }
export const deny: OverrideTerms = { ...allow, action: 'DENY' }

export const nameOf = ({ ruleSetId, ruleId }: BucketGroup, key: string, isRange = false): OverrideName => ({
  ruleSetId,
  ruleId,
  key,
  isRange,
})

export const bookOf = ({ overrides }: BucketStore): OverrideBook =>
  overrides ?? assert.fail('the store keeps no overrides')
