import type { BucketStore, SharedResets } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'

/**
 * Rejects store calls until the bucket generations have been read. Without them the current buckets are unknown, and charging
 * outdated buckets would allow too many requests.
 */
export function requireGenerations(store: BucketStore, resets: SharedResets): BucketStore {
  const known = <T>(call: () => Promise<T>): Promise<T> =>
    resets.isKnown
      ? call()
      : Promise.reject(
          new FluxGateError(
            'FLUXGATE_STORE_FAILED',
            'The bucket store has not been reachable since the process started.',
          ),
        )
  return {
    charge: (demands, peek) => known(() => store.charge(demands, peek)),
    refund: (refunds) => known(() => store.refund(refunds)),
    reset: (group, key) => known(() => store.reset(group, key)),
    retire: (group) => store.retire?.(group),
    close: () => store.close(),
    ...(store.overrides && { overrides: store.overrides }),
  }
}
