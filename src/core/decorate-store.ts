import type { BucketStore, LeasingStore } from './bucket-store.js'

/**
 * Returns a store with some members replaced. Everything else is forwarded to `store`, including its capabilities.
 * `chargeSync` and `chargeLocally` are not forwarded, because a decorator that replaces `charge` would be bypassed by them.
 */
export function decorateStore(store: LeasingStore, changes: Partial<BucketStore>): LeasingStore
export function decorateStore(store: BucketStore, changes: Partial<BucketStore>): BucketStore
export function decorateStore(store: BucketStore, changes: Partial<BucketStore>): BucketStore {
  const { overrides, generations, availability, leasing, holds, bans, variants, reservations, rejectionCache } = store
  return {
    charge: (charges, peek) => store.charge(charges, peek),
    refund: (refunds) => store.refund(refunds),
    reset: (group, key) => store.reset(group, key),
    retire: (group) => store.retire?.(group),
    close: () => store.close(),
    overrides,
    generations,
    availability,
    leasing,
    holds,
    bans,
    variants,
    reservations,
    rejectionCache,
    ...changes,
  }
}

/** Converts the deprecated members of a custom store to capabilities. Returns other stores unchanged. */
export function withCapabilities(store: BucketStore): BucketStore {
  const { generations = store.resets, availability } = store
  const hasOwn = store.ready !== undefined || store.probe !== undefined || store.isBounded !== undefined
  if (generations === store.generations && (availability !== undefined || !hasOwn)) return store
  return decorateStore(store, {
    ...(store.chargeSync && { chargeSync: store.chargeSync.bind(store) }),
    generations,
    availability: availability ?? {
      isBounded: store.isBounded,
      ...(store.ready && { ready: store.ready.bind(store) }),
      ...(store.probe && { probe: store.probe.bind(store) }),
    },
  })
}
