/** Over-admission: what the shared store granted, and what each process granted by itself while the store failed. */

import { type Charge, type Entry, groupBy, type History } from '../history.js'
import { type Limit, limitOf } from '../limits.js'
import type { Violation } from './checker.js'
import { findExcess, type Loss } from './interval-bound.js'

/** A lease is valid for at most two seconds: what was charged before a loss may be spent that much later. */
const longestLeaseUs = 2_000_000
/** Redis reads its clock a little before or after the moment in which it decides. */
const clockSlackUs = 1_000

interface Granted {
  readonly entry: Entry
  readonly charge: Charge
  readonly startAt: number
  readonly endAt: number
  readonly permits: number
}

interface Bucket {
  readonly limit: Limit
  readonly capacity: number
  /** Where the bucket is, for reports. */
  readonly name: string
  readonly isLocal: boolean
  readonly granted: Granted[]
}

export function checkAdmissions(history: History): Violation[] {
  return [...bucketsOf(history.entries).values()].flatMap((bucket) => checkBucket(bucket, history))
}

/** One bucket per rule, identity and capacity; local decisions have their own in every start of a process. */
function bucketsOf(entries: readonly Entry[]): Map<string, Bucket> {
  const buckets = new Map<string, Bucket>()
  for (const entry of entries) {
    if (!entry.allowed || entry.error !== undefined) continue
    for (const charge of entry.charges) {
      const limit = limitOf(charge.rule)
      const identity = limit.scope === 'API_KEY' ? entry.api : entry.user
      const place = entry.degraded ? `local to ${entry.decidedBy}` : 'shared'
      const name = `${charge.rule} of ${identity}, capacity ${charge.limit}, ${place}`
      let bucket = buckets.get(name)
      if (!bucket) {
        bucket = { limit, capacity: charge.limit, name, isLocal: entry.degraded, granted: [] }
        buckets.set(name, bucket)
      }
      const { startAt, endAt, permits } = entry
      bucket.granted.push({ entry, charge, startAt, endAt, permits })
    }
  }
  return buckets
}

function checkBucket(bucket: Bucket, history: History): Violation[] {
  const { limit, isLocal } = bucket
  const losses = isLocal ? [] : history.incidents.filter(({ losesWrites }) => losesWrites)
  if (limit.algorithm === 'FIXED_WINDOW' || limit.algorithm === 'SLIDING_WINDOW_COUNTER') {
    const found = checkWindows(bucket, losses, history)
    return found.length > 0 || limit.algorithm === 'FIXED_WINDOW' ? found : checkWeights(bucket, losses, history)
  }
  const found = checkIntervals(bucket, losses, history)
  return limit.algorithm === 'LEAKY_BUCKET' ? [...found, ...checkSpacing(bucket, losses, history)] : found
}

const kindOf = ({ isLocal }: Bucket): Violation['kind'] => (isLocal ? 'local over-admission' : 'over-admission')
const entriesOf = (granted: readonly Granted[]): Entry[] => granted.map(({ entry }) => entry)
const permitsOf = (granted: readonly Granted[]): number => granted.reduce((sum, { permits }) => sum + permits, 0)

function checkIntervals(bucket: Bucket, losses: readonly Loss[], { clockOffset }: History): Violation[] {
  const { limit, capacity } = bucket
  const windowUs = limit.windowMs * 1_000
  const isSliding = limit.algorithm === 'SLIDING_WINDOW_LOG'
  const excess = findExcess(bucket.granted, {
    capacity,
    perUs: isSliding ? 0 : limit.refillTokens / windowUs,
    ...(isSliding && { windowUs }),
    losses: limit.isLeased ? losses.map(({ from, to }) => ({ from, to: to + longestLeaseUs })) : losses,
    slackUs: clockSlackUs + clockOffset.most - clockOffset.least,
  })
  if (!excess) return []
  const ms = ((excess.to - excess.from) / 1_000).toFixed(3)
  const text = `${bucket.name}: ${excess.permits} permits within ${ms} ms; at most ${excess.allowed.toFixed(3)} are allowed`
  return [{ kind: kindOf(bucket), text, entries: entriesOf(excess.uses) }]
}

/** `resetAt` is the end of the window that the store counted in. */
function checkWindows(bucket: Bucket, losses: readonly Loss[], { clockOffset }: History): Violation[] {
  const { limit, capacity, granted } = bucket
  const windows = groupBy(granted, ({ charge }) => charge.resetAt)
  return [...windows].flatMap(([resetAt, inside]) => {
    const from = (resetAt - limit.windowMs) * 1_000 - clockOffset.most
    const to = resetAt * 1_000 - clockOffset.least
    const lost = losses.filter((loss) => loss.from <= to && loss.to >= from).length
    const allowed = capacity * (1 + lost)
    const permits = permitsOf(inside)
    if (permits <= allowed) return []
    const text = `${bucket.name}: ${permits} permits in the window that ends at ${resetAt}; at most ${allowed} are allowed`
    return [{ kind: kindOf(bucket), text, entries: entriesOf(inside) }]
  })
}

/**
 * The count of the previous window, weighted by the part of it that is still inside, and the current count together. Of any
 * requests of a window the last one was decided by the latest end among them, when the weight was at its smallest.
 */
function checkWeights(bucket: Bucket, losses: readonly Loss[], { clockOffset }: History): Violation[] {
  const { limit, capacity, granted } = bucket
  const windows = groupBy(granted, ({ charge }) => charge.resetAt)
  return [...windows].flatMap(([resetAt, inside]) => {
    const previous = windows.get(resetAt - limit.windowMs) ?? []
    const startUs = (resetAt - limit.windowMs) * 1_000
    const from = startUs - limit.windowMs * 1_000 - clockOffset.most
    const to = resetAt * 1_000 - clockOffset.least
    if (losses.some((loss) => loss.from <= to && loss.to >= from)) return []
    const byEnd = inside.toSorted((a, b) => a.endAt - b.endAt)
    let current = 0
    for (const { endAt, permits } of byEnd) {
      current += permits
      const passed = (endAt + clockOffset.most + clockSlackUs - startUs) / (limit.windowMs * 1_000)
      const weighted = permitsOf(previous) * Math.max(0, 1 - passed)
      if (current + weighted <= capacity) continue
      const text = `${bucket.name}: ${current} permits in the window that ends at ${resetAt}, and ${weighted.toFixed(3)} of the one before; at most ${capacity} are allowed`
      return [{ kind: kindOf(bucket), text, entries: entriesOf([...previous, ...byEnd]) }]
    }
    return []
  })
}

/**
 * A request drains from the bucket at `resetAt`, and the one before it by the time it is released. So two instants of
 * `resetAt`, each rounded up to a millisecond, are at least as far apart as the later request takes to drain.
 */
function checkSpacing(bucket: Bucket, losses: readonly Loss[], history: History): Violation[] {
  const { limit, granted } = bucket
  const permitMs = limit.windowMs / limit.refillTokens
  const drift = (history.clockOffset.most - history.clockOffset.least) / 1_000
  const byReset = granted.toSorted((a, b) => a.charge.resetAt - b.charge.resetAt)
  return byReset.flatMap((later, index) => {
    const earlier = byReset[index - 1]
    if (!earlier) return []
    const apartMs = later.charge.resetAt - earlier.charge.resetAt
    const leastMs = later.permits * permitMs - 1 - drift
    const from = Math.min(earlier.startAt, later.startAt)
    const to = Math.max(earlier.endAt, later.endAt)
    if (apartMs >= leastMs || losses.some((loss) => loss.from <= to && loss.to >= from)) return []
    const text = `${bucket.name}: two releases that end ${apartMs} ms apart; at least ${leastMs.toFixed(1)} ms are required`
    return [{ kind: 'release spacing' as const, text, entries: [earlier.entry, later.entry] }]
  })
}
