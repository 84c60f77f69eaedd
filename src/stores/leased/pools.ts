import type { BucketGroup } from '../../core/bucket-store.js'
import { isLongKey, ownText } from '../../core/keys/bounded-key.js'
import { newPool, type Pool } from './pool.js'

interface GroupPools {
  /** Maximum number of permits that may be held per bucket. */
  readonly maxPermits: number
  readonly byKey: Map<string, Pool>
}

/** The pools of all leased rules, by rule and key. */
export class LeasePools {
  readonly #share: number
  readonly #maxPools: number
  readonly #byGroup = new Map<BucketGroup, GroupPools>()
  #size = 0
  /** The group of the last lookup: consecutive decisions usually have the same rule. */
  #lastGroup: BucketGroup | undefined
  #last: GroupPools | undefined

  constructor(share: number, maxPools: number) {
    this.#share = share
    this.#maxPools = maxPools
  }

  get size(): number {
    return this.#size
  }

  find(group: BucketGroup, key: string): Pool | undefined {
    return this.#of(group)?.byKey.get(key)
  }

  /**
   * Returns the pool of a bucket, or creates it if it may hold more than `permits` and the maximum number of pools is not
   * reached. Long keys have no pool: a pool keeps the whole key, and only the number of pools is bounded.
   */
  open(group: BucketGroup, key: string, permits: number): Pool | undefined {
    const pools = this.#of(group)
    const pool = pools?.byKey.get(key)
    if (pool !== undefined || this.#size >= this.#maxPools || isLongKey(key)) return pool
    const maxPermits = pools?.maxPermits ?? maxPermitsOf(group, this.#share)
    if (maxPermits <= permits) return undefined
    const created = newPool(group, ownText(key), maxPermits)
    const { byKey } = pools ?? this.#add(group, maxPermits)
    byKey.set(created.key, created)
    this.#size += 1
    return created
  }

  delete({ group, key }: Pool): void {
    const pools = this.#byGroup.get(group)
    if (!pools?.byKey.delete(key)) return
    this.#size -= 1
    if (pools.byKey.size === 0) this.#drop(group)
  }

  of(group: BucketGroup): Pool[] {
    return [...(this.#byGroup.get(group)?.byKey.values() ?? [])]
  }

  *[Symbol.iterator](): Generator<Pool> {
    for (const { byKey } of this.#byGroup.values()) yield* byKey.values()
  }

  #of(group: BucketGroup): GroupPools | undefined {
    if (group !== this.#lastGroup) {
      this.#last = this.#byGroup.get(group)
      this.#lastGroup = group
    }
    return this.#last
  }

  #add(group: BucketGroup, maxPermits: number): GroupPools {
    const pools: GroupPools = { maxPermits, byKey: new Map() }
    this.#byGroup.set(group, pools)
    this.#last = pools
    return pools
  }

  #drop(group: BucketGroup): void {
    this.#byGroup.delete(group)
    this.#lastGroup = undefined
    this.#last = undefined
  }
}

function maxPermitsOf({ bands }: BucketGroup, share: number): number {
  let smallest = Number.POSITIVE_INFINITY
  for (const { capacity } of bands) smallest = Math.min(smallest, capacity)
  return Math.floor(smallest * share)
}
