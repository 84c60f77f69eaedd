import type { BucketGroup } from '../bucket-store.js'

/** Identifies a hold within its bucket: 64 random bits, as two unsigned integers. */
export interface HoldId {
  readonly high: number
  readonly low: number
}

/** The hold of one rule and key. A decision takes one hold id, which identifies its hold in every bucket. */
export interface Hold {
  readonly group: BucketGroup
  readonly key: string
  readonly hold: HoldId
}

/** Releases and renews the holds of the algorithm CONCURRENCY. `charge` takes them. */
export interface HoldStorage {
  /** Releases holds. Resolves to false if none of them exists any more. */
  release(holds: readonly Hold[]): Promise<boolean>
  /** Extends holds by the `maxHold` of their bands. Resolves to false unless all of them exist. */
  renew(holds: readonly Hold[]): Promise<boolean>
}
