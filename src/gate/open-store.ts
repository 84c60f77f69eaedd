import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { withCapabilities } from '../core/decorate-store.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import { type ResilientOptions, resilient } from '../stores/resilient/resilient.js'
import type { FluxGateOptions } from './options.js'

/** Opens a Redis store by URI or settings, and throws for any other value. */
export type OpenRedis = (store: unknown, resilience: FluxGateOptions['resilience']) => BucketStore

export interface StoreParts {
  readonly openRedis: OpenRedis
  readonly clock: Clock
  readonly maxKeys?: number | undefined
  readonly maxReservations?: number | undefined
  readonly resilience?: FluxGateOptions['resilience'] | undefined
}

/** Opens a store by name, URI or settings. Returns a `BucketStore` of the caller with its capabilities. */
export function openStore(store: FluxGateOptions['store'], parts: StoreParts): BucketStore {
  const { clock, maxKeys, maxReservations, resilience, openRedis } = parts
  if (store === undefined || store === 'memory') return memoryStore({ clock, maxKeys, maxReservations })
  return isStore(store) ? withCapabilities(store) : openRedis(store, resilience)
}

/** Adds a timeout and a circuit breaker, unless the store is synchronous or has its own. */
export const boundedStore = (store: BucketStore, options?: ResilientOptions): BucketStore =>
  store.chargeSync !== undefined || store.availability?.isBounded ? store : resilient(store, options)

/** True if the value looks like a `BucketStore`. */
export const isStore = (store: unknown): store is BucketStore =>
  typeof store === 'object' && store !== null && 'charge' in store && typeof store.charge === 'function'
