import type { Charge, ChargeResult, LeasingStore } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import type { Lender } from './lender.js'
import { addRemaining } from './pool.js'

/** Peeks with held permits counted as available: the store is asked only for the permits that are missing. */
export async function peekWithHeld(
  store: LeasingStore,
  lender: Lender,
  charges: readonly Charge[],
  clock: Clock,
): Promise<ChargeResult> {
  const now = clock.now()
  const held = charges.map(({ group, key }) => {
    const pool = group.isLeased ? lender.pools.find(group, key) : undefined
    if (pool === undefined) return 0
    lender.dropEnded(pool, now)
    return pool.left
  })
  const missing = charges.map((charge, i) => withoutHeld(charge, held[i] as number))
  const result = await store.charge(missing, true)
  let first = 0
  const applied = result.applied?.map((charge, i) => ({ ...charge, permits: (charges[i] as Charge).permits }))
  const bands = (applied ?? charges).flatMap(({ group, permits }, i) => {
    const results = result.bands.slice(first, first + group.bands.length)
    first += group.bands.length
    // A granted peek reports the state after the charge, a rejected one the current state.
    const isCharged = result.granted && results.every(({ allowed }) => allowed)
    const fromHeld = isCharged ? permits - (missing[i] as Charge).permits : 0
    return addRemaining(results, (held[i] as number) - fromHeld)
  })
  return { ...result, bands, ...(applied !== undefined && { applied }) }
}

/** A charge above the capacity is always rejected, whatever is held. */
function withoutHeld(charge: Charge, held: number): Charge {
  if (held === 0 || charge.group.bands.some(({ capacity }) => charge.permits > capacity)) return charge
  return { ...charge, permits: Math.max(0, charge.permits - held) }
}
