/** Reads and resets the buckets of current rules. */
import { type BucketStore, chargeOf } from '../../core/bucket-store.js'
import { checkKey } from '../../core/decision/check-request.js'
import { bucketState } from '../../core/reservations/bucket-state.js'
import type { BucketState } from '../../core/reservations/reservation-storage.js'
import type { CurrentRules } from '../current-rules.js'
import type { BucketSelector } from '../flux-gate.js'

/** The buckets of a key under one rule, or under all rules of a rule set, by band. */
export async function lookAtBuckets(
  rules: CurrentRules,
  store: BucketStore,
  { ruleSetId, ruleId, key }: BucketSelector,
): Promise<readonly BucketState[]> {
  const states = rules.choose(ruleSetId, ruleId).map(({ charge, isShadow }) => {
    const shadow = isShadow?.(checkKey(key)) ?? charge.shadow
    return bucketState(store, ruleSetId, chargeOf({ ...charge, shadow }, checkKey(key), 0))
  })
  return (await Promise.all(states)).flat()
}

/** Without a key, resets all buckets of the rules. */
export async function resetBuckets(
  rules: CurrentRules,
  store: BucketStore,
  { ruleSetId, ruleId, key }: Pick<BucketSelector, 'ruleSetId'> & Partial<BucketSelector>,
): Promise<void> {
  const chosen = rules.choose(ruleSetId, ruleId)
  if (key === undefined) {
    const ruleIds = chosen.map(({ rule }) => rule.id)
    return rules.resetRules(ruleSetId, ruleIds)
  }
  checkKey(key)
  for (const { group } of chosen) await store.reset(group, key)
}
