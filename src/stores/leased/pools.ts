import type { BucketGroup } from '../../core/bucket-store.js'
import { isLongKey, ownText } from '../../core/keys/bounded-key.js'
import { newPool, type Pool } from './pool.js'

interface GroupPools {
  /** The most permits of one bucket that may be held at once. */
  readonly most: number
  readonly byKey: Map<string, Pool>
}

/** The pools of all leased rules, by rule and identity. */
export class LeasePools {
  readonly #share: number
  readonly #maxPools: number
  readonly #byGroup = new Map<BucketGroup, GroupPools>()
  #size = 0
  /** Most decisions are about the same rule as the one before. */
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
   * The pool of a bucket that may hold more than `permits` in advance; made if there is room for one more. A long key gets
   * none: the pool needs the whole key to ask the store with, and pools are bounded by their number alone.
   */
  open(group: BucketGroup, key: string, permits: number): Pool | undefined {
    const pools = this.#of(group)
    const pool = pools?.byKey.get(key)
    if (pool !== undefined || this.#size >= this.#maxPools || isLongKey(key)) return pool
    const most = pools?.most ?? mostOf(group, this.#share)
    if (most <= permits) return undefined
    const made = newPool(group, ownText(key), most)
    const home = pools ?? this.#add(group, most)
    home.byKey.set(made.key, made)
    this.#size += 1
    return made
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

  #add(group: BucketGroup, most: number): GroupPools {
    const pools: GroupPools = { most, byKey: new Map() }
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

function mostOf({ bands }: BucketGroup, share: number): number {
  let least = Number.POSITIVE_INFINITY
  for (const { capacity } of bands) least = Math.min(least, capacity)
  return Math.floor(least * share)
}
