/**
 * The size of a lease: about the demand of a quarter of a second, or twice the last batch if that was spent faster. Keys with
 * little traffic are not worth a lease and are charged one by one.
 */
import type { Pool } from './pool.js'

const batchMs = 250
/** Older demand says nothing about the current rate. */
const memoryMs = 1_000

/** The number of permits to lease beyond those that are needed now. */
export function batchSize({ demand, countedFrom }: Pool, now: number): number {
  const elapsed = now - countedFrom
  if (elapsed > memoryMs) return 0
  return Math.floor(elapsed * 2 <= batchMs ? demand * 2 : (demand * batchMs) / elapsed)
}

/** Counts the permits of a request. Call it after `batchSize`, which depends on earlier requests only. */
export function countDemand(pool: Pool, permits: number, now: number): void {
  if (now - pool.countedFrom > memoryMs) restartCount(pool, now)
  pool.demand += permits
  pool.usedAt = now
}

export function restartCount(pool: Pool, now: number): void {
  pool.demand = 0
  pool.countedFrom = now
}

/** The number of permits that this process may still lease. */
export const roomOf = ({ maxPermits, left, taken }: Pool): number => maxPermits - left - taken

/** True if the next batch should be leased now: few permits are left, and the others were spent quickly. */
export const isRunningLow = (pool: Pool, now: number): boolean =>
  pool.left * 4 < pool.batch && pool.requested === 0 && now - pool.countedFrom < batchMs && now >= pool.pausedUntil
