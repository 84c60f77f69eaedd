import type { BucketStore, Charge, ChargeResult } from '../../core/bucket-store.js'
import { type Clock, checkClock, systemClock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { MemoryBuckets } from './buckets.js'
import { defaultMaxReservations } from './reservations.js'

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** Maximum number of keys over all rules, 1 to 16,777,216; default 1,000,000. Beyond it, keys are evicted. */
  readonly maxKeys?: number | undefined
  /**
   * Maximum number of reservations that are open, or settled and not yet expired, 1 to 16,777,216; default 200,000. Each takes about
   * 500 bytes. Beyond it, `reserve` rejects with FLUXGATE_RESERVATION_LIMIT.
   */
  readonly maxReservations?: number | undefined
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
  const { maxKeys = 1_000_000, maxReservations = defaultMaxReservations, clock = systemClock, ...others } = options
  for (const name of Object.keys(others))
    throw invalid(`memoryStore has no option ${JSON.stringify(name)}. Use maxKeys, maxReservations or clock.`)
  checkBound('maxKeys', maxKeys)
  checkBound('maxReservations', maxReservations)
  return new MemoryBuckets(maxKeys, checkClock(clock), maxReservations)
}

function checkBound(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1 || value > maxMapSize)
    throw invalid(`${name} of memoryStore must be an integer from 1 to ${maxMapSize}; received ${String(value)}.`)
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
