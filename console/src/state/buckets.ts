/** The buckets of one key. */
import type { BucketState } from '../../../src/core/reservations/reservation-storage.js'
import { get } from './api.js'
import type { PlacedRule } from './bans.js'

export type BucketBand = Pick<BucketState, 'label' | 'limit' | 'remaining' | 'resetAt' | 'windowMs' | 'reserved'>

export const bucketPath = ({ ruleSetId, rule }: PlacedRule, key: string): string =>
  `/api/buckets?${new URLSearchParams({ ruleSetId, ruleId: rule.id, key })}`

/** The bucket of a key under a rule, by band. */
export async function loadBucket(rule: PlacedRule, key: string, signal?: AbortSignal): Promise<readonly BucketBand[]> {
  const { bands } = await get<{ bands: readonly BucketBand[] }>(bucketPath(rule, key), signal)
  return bands
}
