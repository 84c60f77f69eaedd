import type { BucketStore, Charge } from '../bucket-store.js'
import { composeDecision } from '../decision/compose-decision.js'
import type { BucketState } from './reservation-storage.js'

/** The buckets of a key under one rule, by band. `charge` has no permits, so that nothing is charged. */
export async function bucketState(
  store: Pick<BucketStore, 'charge' | 'reservations'>,
  ruleSetId: string,
  charge: Charge,
): Promise<readonly BucketState[]> {
  const { reservations } = store
  const result = await store.charge([charge], true)
  const { bands } = composeDecision(ruleSetId, [charge], result, false)
  if (reservations?.reservedIn === undefined) return bands
  // With an override, the key has other buckets than those of the rule.
  const [{ group, key } = charge] = result.applied ?? []
  const reserved = await reservations.reservedIn(group, key, result.now)
  return bands.map((band, i) => {
    // A bucket that has refilled since drops its reservations at the next charge.
    const open = band.remaining < band.limit ? reserved[i] : undefined
    return open === undefined || open.reservations === 0 ? band : { ...band, reserved: open }
  })
}
