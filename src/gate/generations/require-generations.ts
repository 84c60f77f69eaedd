import type { BucketStore, SharedGenerations } from '../../core/bucket-store.js'
import { decorateStore } from '../../core/decorate-store.js'
import { FluxGateError } from '../../core/errors.js'

/**
 * Rejects store calls until the bucket generations have been read. Without them the current buckets are unknown, and charging
 * outdated buckets would allow too many requests. Returns the store itself if the generations are known.
 */
export function requireGenerations(store: BucketStore, generations: SharedGenerations): BucketStore {
  if (generations.isKnown) return store
  const known = <T>(call: () => Promise<T>): Promise<T> =>
    generations.isKnown
      ? call()
      : Promise.reject(
          new FluxGateError(
            'FLUXGATE_STORE_FAILED',
            'The bucket store has not been reachable since the process started.',
          ),
        )
  const { variants, reservations } = store
  return decorateStore(store, {
    charge: (charges, peek) => known(() => store.charge(charges, peek)),
    ...(store.chargeLocally && {
      chargeLocally: (charges) => (generations.isKnown ? store.chargeLocally?.(charges) : undefined),
    }),
    variants: variants && { charge: (charge, variant) => known(() => variants.charge(charge, variant)) },
    reservations: reservations && {
      reserve: (request) => known(() => reservations.reserve(request)),
      settle: (request) => known(() => reservations.settle(request)),
      ...(reservations.reservedIn && {
        reservedIn: (group, key, now) => known(async () => reservations.reservedIn?.(group, key, now) ?? []),
      }),
    },
    refund: (refunds) => known(() => store.refund(refunds)),
    reset: (group, key) => known(() => store.reset(group, key)),
  })
}
