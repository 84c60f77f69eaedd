/** The buckets of one key. */
import { get } from './api.js'
import type { PlacedRule } from './bans.js'
import type { BandDecision } from './statistics.js'

export interface BucketBand extends Omit<BandDecision, 'key'> {
  /** Open reservations, unless the bucket has none. */
  readonly reserved?: { readonly reservations: number; readonly permits: number }
}

export const bucketPath = ({ ruleSetId, rule }: PlacedRule, key: string): string =>
  `/api/buckets?${new URLSearchParams({ ruleSetId, ruleId: rule.id, key })}`

/** The bucket of a key under a rule, by band. */
export async function loadBucket(rule: PlacedRule, key: string, signal?: AbortSignal): Promise<readonly BucketBand[]> {
  const { bands } = await get<{ bands: readonly BucketBand[] }>(bucketPath(rule, key), signal)
  return bands
}
