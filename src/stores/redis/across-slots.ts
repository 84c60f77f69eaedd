import type { BucketGroup, Charge, ChargeResult, LeasingStore, Refund } from '../../core/bucket-store.js'
import { refundsOf } from '../../core/decision/rate-limiter.js'

interface Part {
  readonly demands: readonly Charge[]
  /** Where each demand stands among those of the whole. */
  readonly places: readonly number[]
}

/**
 * Decisions over several slots of a cluster. Each slot is charged by itself, and what was taken is given back if another
 * refuses or fails: for a short while that may refuse too much, and it never admits too much.
 */
export function acrossSlots(store: LeasingStore, slotOf: (group: BucketGroup, key: string) => number): LeasingStore {
  return {
    failsPartially: true,
    get unreachable() {
      return store.unreachable
    },
    lease: (request) => store.lease(request),
    settle: (settlements) => store.settle(settlements),
    refund: (refunds) => store.refund(refunds),
    reset: (group, key) => store.reset(group, key),
    ...(store.probe && { probe: store.probe.bind(store) }),
    close: () => store.close(),
    async charge(demands, peek) {
      const parts = partsOf(demands, slotOf)
      if (parts.length === 1) return store.charge(demands, peek)
      const answers = await Promise.allSettled(parts.map((part) => store.charge(part.demands, peek)))
      const results = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : undefined))
      if (results.every((result) => result?.granted)) return joined(demands, parts, results as ChargeResult[])
      const standing = await Promise.allSettled(
        parts.map((part, i) => (results[i]?.granted ? takenBack(store, part.demands, results[i], peek) : results[i])),
      )
      for (const answer of [...answers, ...standing]) if (answer.status === 'rejected') throw answer.reason
      return joined(
        demands,
        parts,
        standing.map((answer) => (answer as PromiseFulfilledResult<ChargeResult>).value),
      )
    },
  }
}

/** Gives back what a part was granted, and tells how its bands stand then. */
async function takenBack(
  store: LeasingStore,
  demands: readonly Charge[],
  result: ChargeResult,
  peek: boolean,
): Promise<ChargeResult> {
  const refunds: readonly Refund[] = peek ? [] : refundsOf(demands, result)
  const looks = demands.map((demand) => ({ ...demand, permits: 0 }))
  // In the same turn, so that one call does both, in this order.
  const [, standing] = await Promise.all([store.refund(refunds), store.charge(looks, true)])
  const bands = result.bands.map((said, i) => (said.allowed ? (standing.bands[i] ?? said) : said))
  return { ...result, granted: false, now: standing.now, bands }
}

function partsOf(demands: readonly Charge[], slotOf: (group: BucketGroup, key: string) => number): Part[] {
  const parts = new Map<number, { demands: Charge[]; places: number[] }>()
  for (const [place, demand] of demands.entries()) {
    const slot = slotOf(demand.group, demand.key)
    const part = parts.get(slot)
    if (part === undefined) parts.set(slot, { demands: [demand], places: [place] })
    else {
      part.demands.push(demand)
      part.places.push(place)
    }
  }
  return [...parts.values()]
}

/** One result in the order of the demands; its time is that of the node whose clock is ahead. */
function joined(demands: readonly Charge[], parts: readonly Part[], results: readonly ChargeResult[]): ChargeResult {
  const byDemand: ChargeResult['bands'][] = new Array(demands.length)
  const applied = [...demands]
  const decidedAt: number[] = new Array(demands.length)
  for (const [i, part] of parts.entries()) {
    const result = results[i] as ChargeResult
    let first = 0
    for (const [j, place] of part.places.entries()) {
      const demand = (result.applied ?? part.demands)[j] as Charge
      const count = demand.group.bands.length
      byDemand[place] = result.bands.slice(first, first + count)
      applied[place] = demand
      decidedAt[place] = result.now
      first += count
    }
  }
  return {
    granted: results.every(({ granted }) => granted),
    now: Math.max(...results.map(({ now }) => now)),
    decidedAt,
    bands: byDemand.flat(),
    ...(results.some((result) => result.applied !== undefined) && { applied }),
  }
}
