import type { BucketGroup } from '../bucket-store.js'

/** Identifies a hold within its bucket: 64 random bits, as two unsigned integers. */
export interface HoldId {
  /** The upper 32 bits. */
  readonly high: number
  /** The lower 32 bits. */
  readonly low: number
}

/** The hold of one rule and key. A decision takes one hold id, which identifies its hold in every bucket. */
export interface Hold {
  /** The buckets of the rule that was charged. */
  readonly group: BucketGroup
  /** The key that was charged. */
  readonly key: string
  /** Identifies the hold in every bucket of the group. */
  readonly hold: HoldId
}

/** Releases and renews the holds of the algorithm CONCURRENCY. `charge` takes them. */
export interface HoldStorage {
  /** Releases holds. Resolves to false if none of them exists any more. */
  release(holds: readonly Hold[]): Promise<boolean>
  /** Extends holds by the `maxHold` of their bands. Resolves to false unless all of them exist. */
  renew(holds: readonly Hold[]): Promise<boolean>
}
