import type { BucketStore } from '../../src/core/bucket-store.js'
import { hashSlot } from '../../src/redis/client/hash-slot.js'

/** A name for the second identity of random histories that shares a slot with the first one. */
const bob = Array.from({ length: 2 ** 18 }, (_, i) => `bob${i}`).find(
  (name) => hashSlot(name) === hashSlot('alice'),
) as string

/**
 * Puts both identities of random histories into one slot of a cluster. A decision over several slots gives back what it
 * took if one of them rejects, and may reject too much until then; the reference models know one slot only.
 */
export function inOneSlot(store: BucketStore): BucketStore {
  const named = <Claim extends { readonly key: string }>(claims: readonly Claim[]): Claim[] =>
    claims.map((claim) => (claim.key === 'bob' ? { ...claim, key: bob } : claim))
  return {
    charge: (demands, peek) => store.charge(named(demands), peek),
    refund: (refunds) => store.refund(named(refunds)),
    reset: (rule, key) => store.reset(rule, key === 'bob' ? bob : key),
    close: () => store.close(),
  }
}
