import type { BucketStore, Charge, ChargeResult } from '../../core/bucket-store.js'
import { type Clock, checkClock, systemClock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import { MemoryBuckets } from './buckets.js'

export interface MemoryStoreOptions {
  /** How many identities to remember at most, over all rules; default 1 000 000. */
  readonly maxKeys?: number | undefined
  readonly clock?: Clock | undefined
}

export interface MemoryStore extends BucketStore {
  chargeSync(demands: readonly Charge[], peek: boolean): ChargeResult
  /** How many identities are remembered now. */
  readonly size: number
}

/** A JavaScript Map holds no more than this. */
const mostKeys = 2 ** 24

/** Buckets in this process: the embedded default, and what limits alone when a shared store is gone. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  if (typeof options !== 'object' || options === null)
    throw invalid(`memoryStore takes an object of options, found ${String(options)}.`)
  const { maxKeys = 1_000_000, clock = systemClock, ...others } = options
  // A misspelt bound would be none.
  for (const name of Object.keys(others))
    throw invalid(`memoryStore has no option ${JSON.stringify(name)}; allowed: maxKeys, clock.`)
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > mostKeys)
    throw invalid(`memoryStore: maxKeys must be a whole number from 1 to ${mostKeys}, found ${String(maxKeys)}.`)
  return new MemoryBuckets(maxKeys, checkClock(clock))
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
