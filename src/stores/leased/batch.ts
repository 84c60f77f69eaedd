/**
 * Whether a key is leased, and the size of a batch. A lease, its settlement and the code that executes them cost Redis up to
 * as much as 25 charges that share a call. A key is therefore leased only if a batch serves more requests than that.
 */
import type { Pool } from './pool.js'
import type { LeaseTerms } from './pools.js'

/** A batch covers the expected demand of this time, or of a fixed window that is shorter. */
const batchMs = 1_000
/** The largest factor between two batches. A batch that is spent in no time says little about the rate. */
const maxGrowth = 8
/** A batch that lasts shorter than this is renewed without waiting for the next sweep. */
const shortBatchMs = 200

/** A lease lasts no longer than this, so demand is measured over no longer time. */
export const longestLeaseMs = 2_000
/** If replies are slow, demand is measured over the time of this many replies. */
const measuredReplies = 8

/**
 * The time over which the demand of a key is measured. Callers that wait for a reply make no requests, so slow replies would make
 * a busy key look idle, and a process that is charged slowly would never lease it.
 */
export const measuredMs = ({ longestMs }: LeaseTerms, replyMs: number): number =>
  Math.min(longestMs, Math.max(batchMs, replyMs * measuredReplies))

/** Counts a request. */
export function countDemand(pool: Pool, permits: number, now: number): void {
  pool.demand += permits
  pool.requests += 1
  pool.usedAt = now
}

/** Starts a new measurement. The time in which requests waited for a lease is not part of any, or waiting would look like low demand. */
export function restartCount(pool: Pool, now: number): void {
  pool.demand = 0
  pool.requests = 0
  pool.countedFrom = now
}

/** True if a batch would serve at least half the requests for which a key is leased, by the demand since the last lease. */
export const isWorthwhile = ({ requests, countedFrom, terms }: Pool, now: number, replyMs: number): boolean =>
  requests * measuredMs(terms, replyMs) * 2 >= terms.minRequests * (now - countedFrom)

/** The size of the next batch, which may exceed the permits that this process may still lease. */
export function batchSize({ demand, batch, countedFrom, terms }: Pool, now: number): number {
  const expected = (demand * Math.min(batchMs, terms.longestMs)) / Math.max(now - countedFrom, 1)
  const largest = Math.max(batch, demand) * maxGrowth
  return Math.ceil(Math.max(Math.min(expected, largest), terms.minRequests))
}

/** The number of permits that this process may still lease. */
export const roomOf = ({ terms, left, taken }: Pool): number => terms.maxPermits - left - taken

/** The number of permits left at which a batch of this size is renewed at once; 0 if the next sweep is early enough. */
export function urgentBelow({ demand, countedFrom }: Pool, batch: number, now: number): number {
  const lastsMs = (batch * (now - countedFrom)) / Math.max(demand, 1)
  return lastsMs < shortBatchMs ? Math.ceil(batch / 4) : 0
}

/** True if the sweep should renew the batch. */
export const isRunningLow = ({ left, batch }: Pool): boolean => left * 4 <= batch
