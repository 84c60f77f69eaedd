import type { BucketStore, Charge, ChargeResult } from '../../core/bucket-store.js'
import { type Clock, checkClock, systemClock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { MemoryBuckets } from './buckets.js'

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** Maximum number of keys over all rules, 1 to 16,777,216; default 1,000,000. Beyond it, keys are evicted. */
  readonly maxKeys?: number | undefined
  /** Default: the system clock. */
  readonly clock?: Clock | undefined
}

/** A bucket store in this process. It decides synchronously. */
export interface MemoryStore extends BucketStore {
  chargeSync(charges: readonly Charge[], peek: boolean): ChargeResult
  /** The current number of keys. */
  readonly size: number
}

/** The maximum size of a JavaScript Map. */
const maxMapSize = 2 ** 24

/**
 * Creates a store that keeps buckets in this process.
 *
 * @throws FluxGateError FLUXGATE_ARGUMENT_INVALID if an option is unknown or out of range
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  if (typeof options !== 'object' || options === null)
    throw invalid(`The options of memoryStore must be an object; received ${String(options)}.`)
  const { maxKeys = 1_000_000, clock = systemClock, ...others } = options
  for (const name of Object.keys(others))
    throw invalid(`memoryStore has no option ${JSON.stringify(name)}. Use maxKeys or clock.`)
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > maxMapSize)
    throw invalid(`maxKeys of memoryStore must be an integer from 1 to ${maxMapSize}; received ${String(maxKeys)}.`)
  return new MemoryBuckets(maxKeys, checkClock(clock))
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
