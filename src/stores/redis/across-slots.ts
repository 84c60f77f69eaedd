import type { BucketStore, Charge, ChargeResult, LeasingStore, Refund } from '../../core/bucket-store.js'
import { refundsOf } from '../../core/decision/rate-limiter.js'
import { decorateStore } from '../../core/decorate-store.js'

/** The charges of one slot, and the index of each in the whole decision. */
export interface Part {
  readonly charges: readonly Charge[]
  readonly indexes: readonly number[]
}

/**
 * Decides over several slots of a Redis Cluster. Each slot is charged by its own call. If one of them rejects or fails, the
 * permits of the others are refunded. For a short time this may reject too many requests; it never allows too many.
 */
export function acrossSlots(store: LeasingStore, slotOf: (key: string) => number): LeasingStore {
  return decorateStore(store, {
    async charge(charges, peek) {
      const parts = partsOf(charges, slotOf)
      if (parts.length === 1) return store.charge(charges, peek)
      const replies = await Promise.allSettled(parts.map((part) => store.charge(part.charges.map(withoutQueue), peek)))
      const results = replies.map((reply) => (reply.status === 'fulfilled' ? reply.value : undefined))
      if (results.every((result) => result?.granted)) return joinResults(charges, parts, results as ChargeResult[])
      const undone = await Promise.allSettled(
        parts.map(({ charges: own }, i) => {
          const result = results[i]
          const refunds: readonly Refund[] = result === undefined || peek ? [] : refundsOf(own, result)
          return result?.granted ? undo(store, own, result, () => store.refund(refunds)) : result
        }),
      )
      for (const reply of [...replies, ...undone]) if (reply.status === 'rejected') throw reply.reason
      return joinResults(
        charges,
        parts,
        undone.map((reply) => (reply as PromiseFulfilledResult<ChargeResult>).value),
      )
    },
  })
}

/** The queues of two slots could have different orders, so that no request would ever be first in both. */
const withoutQueue = (charge: Charge): Charge => (charge.isQueued ? { ...charge, isQueued: false } : charge)

/** Returns the permits of a granted part, and the state of its bands after that. */
export async function undo(
  store: Pick<BucketStore, 'charge'>,
  charges: readonly Charge[],
  result: ChargeResult,
  giveBack: () => Promise<unknown>,
): Promise<ChargeResult> {
  const withoutPermits = charges.map((charge) => ({ ...charge, permits: 0 }))
  // Both start in the same turn, so one call executes them in this order.
  const [, current] = await Promise.all([giveBack(), store.charge(withoutPermits, true)])
  const bands = result.bands.map((band, i) => (band.allowed ? (current.bands[i] ?? band) : band))
  return { ...result, granted: false, now: current.now, bands }
}

export function partsOf(charges: readonly Charge[], slotOf: (key: string) => number): Part[] {
  const parts = new Map<number, { charges: Charge[]; indexes: number[] }>()
  for (const [index, charge] of charges.entries()) {
    const slot = slotOf(charge.key)
    const part = parts.get(slot)
    if (part === undefined) parts.set(slot, { charges: [charge], indexes: [index] })
    else {
      part.charges.push(charge)
      part.indexes.push(index)
    }
  }
  return [...parts.values()]
}

/** Joins the results in the order of the charges. The time of the decision is that of the node whose clock is ahead. */
export function joinResults(
  charges: readonly Charge[],
  parts: readonly Part[],
  results: readonly ChargeResult[],
): ChargeResult {
  const bands: ChargeResult['bands'][] = new Array(charges.length)
  const applied = [...charges]
  const decidedAt: number[] = new Array(charges.length)
  for (const [i, part] of parts.entries()) {
    const result = results[i] as ChargeResult
    let first = 0
    for (const [j, index] of part.indexes.entries()) {
      const charge = (result.applied ?? part.charges)[j] as Charge
      const count = charge.group.bands.length
      bands[index] = result.bands.slice(first, first + count)
      applied[index] = charge
      decidedAt[index] = result.now
      first += count
    }
  }
  return {
    granted: results.every(({ granted }) => granted),
    now: Math.max(...results.map(({ now }) => now)),
    decidedAt,
    bands: bands.flat(),
    ...(results.some((result) => result.applied !== undefined) && { applied }),
  }
}
