import type { BucketStore, SharedResets } from '../core/bucket-store.js'
import { FluxGateError } from '../core/errors.js'

/**
 * Until it is known how often rules were reset, nobody can say which of their buckets are in force, and asking others would
 * let too many through. A store that could not be asked for that yet cannot be asked for a decision either.
 */
export function onceResetsAreKnown(store: BucketStore, resets: SharedResets): BucketStore {
  const known = <T>(call: () => Promise<T>): Promise<T> =>
    resets.isKnown
      ? call()
      : Promise.reject(
          new FluxGateError('FLUXGATE_STORE_FAILED', 'The bucket store has not been reached since the start.'),
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
