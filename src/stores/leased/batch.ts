/**
 * How much to lease: about what is asked for in a quarter of a second, and twice what the last batch was asked for when that
 * took less. Who asks seldom is not worth a lease, and is charged one by one.
 */
import type { Pool } from './pool.js'

const batchMs = 250
/** Longer ago says nothing about now. */
const memoryMs = 1_000

/** How many permits to have ready beyond those that are needed now. */
export function batchOf({ demand, countedFrom }: Pool, now: number): number {
  const elapsed = now - countedFrom
  if (elapsed > memoryMs) return 0
  return Math.floor(elapsed * 2 <= batchMs ? demand * 2 : (demand * batchMs) / elapsed)
}

/** Counts what is asked for now; after `batchOf`, which is about those who came before. */
export function count(pool: Pool, permits: number, now: number): void {
  if (now - pool.countedFrom > memoryMs) startCount(pool, now)
  pool.demand += permits
  pool.usedAt = now
}

export function startCount(pool: Pool, now: number): void {
  pool.demand = 0
  pool.countedFrom = now
}

/** What may still be leased without holding more than this process should. */
export const roomOf = ({ most, left, taken }: Pool): number => most - left - taken

/** Whether the next batch should be on its way already: little is left, and it went quickly. */
export const isRunningLow = (pool: Pool, now: number): boolean =>
  pool.left * 4 < pool.batch && pool.asked === 0 && now - pool.countedFrom < batchMs && now >= pool.quietUntil
