import type { Charge, ChargeResult, LeasingStore } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import type { Lender } from './lender.js'
import { withMore } from './pool.js'

/** A peek that counts what is held here as there to be had: the store is asked for what would be missing. */
export async function peekBeside(
  store: LeasingStore,
  lender: Lender,
  demands: readonly Charge[],
  clock: Clock,
): Promise<ChargeResult> {
  const now = clock.now()
  const held = demands.map(({ group, key }) => {
    const pool = group.isLeased ? lender.pools.find(group, key) : undefined
    if (pool === undefined) return 0
    lender.freshen(pool, now)
    return pool.left
  })
  const missing = demands.map((demand, i) => beyond(demand, held[i] as number))
  const result = await store.charge(missing, true)
  let first = 0
  const applied = result.applied?.map((demand, i) => ({ ...demand, permits: (demands[i] as Charge).permits }))
  const bands = (applied ?? demands).flatMap(({ group, permits }, i) => {
    const said = result.bands.slice(first, first + group.bands.length)
    first += group.bands.length
    // Told as it would be after the charge, or as it stands.
    const isCharged = result.granted && said.every(({ allowed }) => allowed)
    const fromHere = isCharged ? permits - (missing[i] as Charge).permits : 0
    return withMore(said, (held[i] as number) - fromHere)
  })
  return { ...result, bands, ...(applied !== undefined && { applied }) }
}

/** What more than a band can hold needs is never to be had, whatever is held. */
function beyond(demand: Charge, held: number): Charge {
  if (held === 0 || demand.group.bands.some(({ capacity }) => demand.permits > capacity)) return demand
  return { ...demand, permits: Math.max(0, demand.permits - held) }
}
