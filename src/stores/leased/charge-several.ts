import type { BandResult, Charge, ChargeResult, LeasingStore, Settlement } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import { refundsOf } from '../../core/decision/rate-limiter.js'
import { countDemand } from './batch.js'
import type { Demand } from './hot-keys.js'
import type { Lender } from './lender.js'
import { endTake, type Lot, type Pool, pooledResult, take } from './pool.js'

/** Permits of a pool that a pending decision has taken. */
interface Take {
  readonly pool: Pool
  readonly lot: Lot
  readonly permits: number
}

type Takes = readonly (Take | undefined)[]

/**
 * Decides several charges, or a shadow rule: takes held permits where there are enough, and charges the rest in one call. The
 * decision is all or nothing and no slower than without leases.
 */
export async function chargeSeveral(
  store: LeasingStore,
  lender: Lender,
  charges: readonly Charge[],
  clock: Clock,
): Promise<ChargeResult> {
  const now = clock.now()
  const scarce: Pool[] = []
  const busy = new Map<Charge, Demand>()
  const takes: Takes = charges.map((charge) => takeFor(lender, charge, now, { scarce, busy }))
  const rest = charges.filter((_, i) => takes[i] === undefined)
  const reply = rest.length === 0 ? undefined : lender.charge(rest, now)
  // After the charge, because this request has priority over future ones.
  for (const pool of scarce) lender.leaseAhead(pool, now)
  if (reply === undefined) {
    endTakes(lender, takes, true)
    return heldResult(takes as readonly Take[], now)
  }
  let result: ChargeResult
  try {
    result = await reply
  } catch (error) {
    endTakes(lender, takes, false)
    throw error
  }
  const answeredAt = clock.now()
  const hasEnded = takes.some((taken) => taken !== undefined && answeredAt >= taken.lot.endsAt)
  endTakes(lender, takes, result.granted && !hasEnded)
  if (result.granted && busy.size > 0) openPools(lender, rest, result, busy)
  if (!result.granted || !hasEnded) return joinResults(takes, result, charges, answeredAt)
  // The lease has ended during the call, so the store decides everything.
  store.refund(refundsOf(rest, result)).catch(() => {})
  return store.charge(charges, false)
}

interface Findings {
  /** Pools that should lease more. */
  readonly scarce: Pool[]
  /** Charges of keys that should be leased. */
  readonly busy: Map<Charge, Demand>
}

/** Takes held permits for a charge, and counts its demand. */
function takeFor(lender: Lender, charge: Charge, now: number, { scarce, busy }: Findings): Take | undefined {
  const { group, key, permits, maxWaitTicks } = charge
  if (group.isLeased !== true || maxWaitTicks > 0) return undefined
  const pool = lender.pools.find(group, key)
  if (pool === undefined) {
    const demand = lender.count(charge, now)
    if (demand !== undefined) busy.set(charge, demand)
    return undefined
  }
  if (permits >= pool.terms.maxPermits) return undefined
  countDemand(pool, permits, now)
  lender.dropEnded(pool, now)
  const lot = pool.queue.length === 0 ? take(pool, permits) : undefined
  if (pool.batch > 0 && (lot === undefined || pool.left < pool.urgentBelow)) scarce.push(pool)
  return lot && { pool, lot, permits }
}

function openPools(
  lender: Lender,
  rest: readonly Charge[],
  { applied = rest, bands }: ChargeResult,
  busy: ReadonlyMap<Charge, Demand>,
): void {
  let first = 0
  for (const [i, { group }] of applied.entries()) {
    const charge = rest[i] as Charge
    const demand = busy.get(charge)
    if (demand !== undefined) lender.open(charge, demand, bands.slice(first, first + group.bands.length))
    first += group.bands.length
  }
}

function endTakes(lender: Lender, takes: Takes, wasGranted: boolean): void {
  const settlements: Settlement[] = []
  for (const taken of takes)
    if (taken !== undefined) endTake(taken.pool, taken.lot, taken.permits, wasGranted, settlements)
  lender.settle(settlements)
}

function heldResult(takes: readonly Take[], now: number): ChargeResult {
  const results = takes.map(({ pool }) => pooledResult(pool, now))
  return {
    granted: true,
    now: Math.max(...results.map((result) => result.now)),
    bands: results.flatMap(({ bands }) => bands),
    fromCache: true,
  }
}

/** Joins held and charged results in the order of the charges. */
function joinResults(takes: Takes, result: ChargeResult, charges: readonly Charge[], now: number): ChargeResult {
  const bands: BandResult[] = []
  // Only charges of the store can have overrides.
  const applied = result.applied && [...charges]
  const rest = result.applied?.values()
  let first = 0
  for (const [i, charge] of charges.entries()) {
    const taken = takes[i]
    if (taken !== undefined) bands.push(...pooledResult(taken.pool, now).bands)
    else {
      const decided: Charge = rest?.next().value ?? charge
      if (applied !== undefined) applied[i] = decided
      bands.push(...result.bands.slice(first, first + decided.group.bands.length))
      first += decided.group.bands.length
    }
  }
  return { ...result, bands, ...(applied !== undefined && { applied }) }
}
