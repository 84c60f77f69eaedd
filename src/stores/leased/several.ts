import type { BandResult, Charge, ChargeResult, LeasingStore, Settlement } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { refundsOf } from '../../core/decision/rate-limiter.js'
import { batchOf, count, isRunningLow } from './batch.js'
import type { Lender } from './lender.js'
import { endTake, type Lot, type Pool, pooledResult, take } from './pool.js'

/** Permits of a pool that a decision has taken, until it is made. */
interface Take {
  readonly pool: Pool
  readonly lot: Lot
  readonly permits: number
}

type Takes = readonly (Take | undefined)[]

/**
 * A decision of several demands, or of a shadow: takes what is held here, and charges the rest in one call, so that it is
 * all or nothing and no slower than without leases.
 */
export async function chargeSeveral(
  store: LeasingStore,
  lender: Lender,
  demands: readonly Charge[],
  clock: Clock,
): Promise<ChargeResult> {
  const now = clock.now()
  const scarce = new Map<Pool, number>()
  const takes: Takes = demands.map((demand) => takeFor(lender, demand, now, scarce))
  const rest = demands.filter((_, i) => takes[i] === undefined)
  const answer = rest.length === 0 ? undefined : store.charge(rest, false)
  // Only then: who is here goes before those who may come.
  for (const [pool, batch] of scarce) lender.askAhead(pool, now, batch)
  if (answer === undefined) {
    endTakes(lender, takes, true)
    return fromHere(takes as readonly Take[], now)
  }
  let result: ChargeResult
  try {
    result = await answer
  } catch (error) {
    endTakes(lender, takes, false)
    throw error
  }
  const answeredAt = clock.now()
  const isTooLate = takes.some((taken) => taken !== undefined && answeredAt >= taken.lot.endsAt)
  endTakes(lender, takes, result.granted && !isTooLate)
  if (!result.granted || !isTooLate) return joined(takes, result, demands, answeredAt)
  // What was taken has ended while the rest was charged, so that it is all asked of the store.
  store.refund(refundsOf(rest, result)).catch(() => {})
  return store.charge(demands, false)
}

/** What is held for a demand; `scarce` gets how much more should be. */
function takeFor(
  lender: Lender,
  { group, key, permits, maxWaitTicks }: Charge,
  now: number,
  scarce: Map<Pool, number>,
): Take | undefined {
  if (group.isLeased !== true || maxWaitTicks > 0) return undefined
  const pool = lender.poolOf(group, key, permits)
  if (pool === undefined || permits >= pool.most) return undefined
  const batch = batchOf(pool, now)
  count(pool, permits, now)
  lender.freshen(pool, now)
  const lot = pool.queue.length === 0 ? take(pool, permits) : undefined
  if (lot === undefined || isRunningLow(pool, now)) scarce.set(pool, batch)
  return lot && { pool, lot, permits }
}

function endTakes(lender: Lender, takes: Takes, wasGranted: boolean): void {
  const settlements: Settlement[] = []
  for (const taken of takes)
    if (taken !== undefined) endTake(taken.pool, taken.lot, taken.permits, wasGranted, settlements)
  lender.tell(settlements)
}

function fromHere(takes: readonly Take[], now: number): ChargeResult {
  const results = takes.map(({ pool }) => pooledResult(pool, now))
  return {
    granted: true,
    now: Math.max(...results.map((result) => result.now)),
    bands: results.flatMap(({ bands }) => bands),
    fromCache: true,
  }
}

/** One result in the order of the demands. */
function joined(takes: Takes, result: ChargeResult, demands: readonly Charge[], now: number): ChargeResult {
  const bands: BandResult[] = []
  // What the store was asked for may have overrides; what is held here has none.
  const applied = result.applied && [...demands]
  const rest = result.applied?.values()
  let first = 0
  for (const [i, asked] of demands.entries()) {
    const taken = takes[i]
    if (taken !== undefined) bands.push(...pooledResult(taken.pool, now).bands)
    else {
      const demand: Charge = rest?.next().value ?? asked
      if (applied !== undefined) applied[i] = demand
      bands.push(...result.bands.slice(first, first + demand.group.bands.length))
      first += demand.group.bands.length
    }
  }
  return { ...result, bands, ...(applied !== undefined && { applied }) }
}
