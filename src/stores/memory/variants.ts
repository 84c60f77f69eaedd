import type { Buckets } from '../../core/algorithm.js'
import {
  type Charge,
  type ChargeResult,
  type ChargeVariant,
  type ChargeVariants,
  copyResult,
} from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import type { MemoryBuckets } from './buckets.js'

/** Forced and partial charges in memory. No other call can run in between, so that each of them is atomic. */
export function memoryVariants(store: MemoryBuckets): Required<ChargeVariants> {
  const chargeSync = (charge: Charge, variant: ChargeVariant): ChargeResult =>
    variant === 'FORCE' ? force(store, charge) : takePart(store, charge)
  return {
    chargeSync,
    async charge(charge, variant) {
      const result = chargeSync(charge, variant)
      return { ...copyResult([charge], result), ...(result.taken !== undefined && { taken: result.taken }) }
    },
  }
}

function force(store: MemoryBuckets, charge: Charge): ChargeResult {
  const { group, now } = store.bucketsOf(charge)
  let { key } = charge
  if (group.listed === undefined) {
    const { table, slot, key: storedKey } = store.openSlot(group, key, now)
    key = storedKey
    for (let i = 0; i < table.buckets.length; i++)
      (table.buckets[i] as Buckets).force(slot, table.bands[i] as Band, charge.permits, now)
  }
  return { ...store.chargeSync([{ ...charge, key, permits: 0 }], true), granted: true }
}

function takePart(store: MemoryBuckets, charge: Charge): ChargeResult {
  const unit = charge.group.permits
  const { bands, applied = [charge] } = store.chargeSync([{ ...charge, permits: 0 }], true)
  let available = charge.permits
  const count = applied[0]?.group.bands.length ?? 0
  for (let i = 0; i < count; i++) available = Math.min(available, bands[i]?.remaining ?? available)
  const taken = Math.max(unit, Math.floor(available / unit) * unit)
  return { ...store.chargeSync([{ ...charge, permits: taken }], false), taken }
}
