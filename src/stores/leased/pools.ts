import type { BucketGroup } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'
import { isLongKey, ownText } from '../../core/keys/bounded-key.js'
import { longestLeaseMs, measuredMs } from './batch.js'
import { type Demand, HotKeys, seedOf } from './hot-keys.js'
import { newPool, type Pool } from './pool.js'

/** The terms of leases, the same for all keys of a rule. */
export interface LeaseTerms {
  /** Maximum number of permits that may be held per bucket. */
  readonly maxPermits: number
  /** Number of requests from which a key is leased. */
  readonly minRequests: number
  /** The longest time that a lease lasts: no longer than the shortest fixed window. */
  readonly longestMs: number
  /** True if all bands are fixed windows. Their leases end with the window, so that spent and ended permits need no settlement. */
  readonly areWindows: boolean
}

interface GroupPools {
  readonly terms: LeaseTerms
  readonly seed: number
  readonly byKey: Map<string, Pool>
}

export interface PoolLimits {
  readonly leaseShare: number
  readonly minRequests: number
  readonly maxPools: number
}

/** The pools of all leased rules, by rule and key. Only keys with many requests have one. */
export class LeasePools {
  readonly #limits: PoolLimits
  readonly #byGroup = new WeakMap<BucketGroup, GroupPools>()
  readonly #pools = new Set<Pool>()
  #hotKeys: HotKeys | undefined
  /** The group of the last lookup: consecutive decisions usually have the same rule. */
  #lastGroup: BucketGroup | undefined
  #last: GroupPools | undefined

  constructor(limits: PoolLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#pools.size
  }

  find(group: BucketGroup, key: string): Pool | undefined {
    const { byKey } = this.#of(group)
    // Without pools, the key need not be hashed.
    return byKey.size === 0 ? undefined : byKey.get(key)
  }

  /**
   * Counts a request of a key without a pool. Returns the demand of the key if it should be leased. Long keys are never leased:
   * a pool keeps the whole key, and only the number of pools is bounded.
   */
  count(group: BucketGroup, key: string, permits: number, now: number, replyMs: number): Demand | undefined {
    const { terms, seed } = this.#of(group)
    const isLeasable = permits * terms.minRequests <= terms.maxPermits && this.#pools.size < this.#limits.maxPools
    if (!isLeasable || isLongKey(key)) return undefined
    this.#hotKeys ??= new HotKeys()
    return this.#hotKeys.count(seed, key, now, terms.minRequests, measuredMs(terms, replyMs))
  }

  /** Returns the pool of a key, and creates it on first use. */
  open(group: BucketGroup, key: string): Pool {
    const { terms, byKey } = this.#of(group)
    const found = byKey.get(key)
    if (found !== undefined) return found
    const pool = newPool(group, ownText(key), terms)
    byKey.set(pool.key, pool)
    this.#pools.add(pool)
    return pool
  }

  delete(pool: Pool): void {
    if (this.#pools.delete(pool)) this.#of(pool.group).byKey.delete(pool.key)
  }

  of(group: BucketGroup): Pool[] {
    return [...this.#of(group).byKey.values()]
  }

  [Symbol.iterator](): Iterator<Pool> {
    return this.#pools.values()
  }

  #of(group: BucketGroup): GroupPools {
    if (group === this.#lastGroup) return this.#last as GroupPools
    const pools = this.#byGroup.get(group) ?? this.#add(group)
    this.#lastGroup = group
    this.#last = pools
    return pools
  }

  #add(group: BucketGroup): GroupPools {
    const pools: GroupPools = { terms: termsOf(group, this.#limits), seed: seedOf(group), byKey: new Map() }
    this.#byGroup.set(group, pools)
    return pools
  }
}

function termsOf({ bands }: BucketGroup, { leaseShare, minRequests }: PoolLimits): LeaseTerms {
  let smallest = Number.POSITIVE_INFINITY
  let longestMs = longestLeaseMs
  for (const { capacity, algorithm, windowTicks } of bands) {
    smallest = Math.min(smallest, capacity)
    if (algorithm === 'FIXED_WINDOW') longestMs = Math.min(longestMs, windowTicks / ticksPerMs)
  }
  const areWindows = bands.every(({ algorithm }) => algorithm === 'FIXED_WINDOW')
  return { maxPermits: Math.floor(smallest * leaseShare), minRequests, longestMs, areWindows }
}
