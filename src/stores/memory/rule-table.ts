import { createBuckets, Rows } from '../../algorithms/index.js'
import type { Buckets, Step } from '../../core/algorithm.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import { ownText } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'

/**
 * All buckets of one rule: an identity has one slot, which is the same in the buckets of every band. So a decision looks
 * an identity up once, however many bands it has.
 */
export class RuleTable {
  readonly name: string
  /** Whose bands it has taken on; of a table that was let go, nobody's. */
  group: BucketGroup | undefined
  bands: readonly Band[] = []
  /** Of each band. */
  buckets: readonly Buckets[] = []
  /** Set when the table was empty and has been let go; whoever still holds it must look again. */
  dropped = false
  readonly #slots = new Map<string, number>()
  readonly #rows = new Rows()
  readonly #freed: number[] = []
  /** By label and algorithm, so that an edited rule finds the levels of the bands it kept. */
  readonly #kept = new Map<string, Buckets>()

  constructor(name: string) {
    this.name = name
  }

  get size(): number {
    return this.#slots.size
  }

  /** Takes on the bands of `group`, which may have changed since the last time. */
  bind(group: BucketGroup): this {
    if (group === this.group) return this
    this.group = group
    this.bands = group.bands
    this.buckets = group.bands.map((band) => {
      const name = JSON.stringify([band.label, band.algorithm, band.refill])
      const buckets = this.#kept.get(name) ?? createBuckets(band, this.#rows)
      this.#kept.set(name, buckets)
      return buckets
    })
    return this
  }

  letGo(): void {
    this.group = undefined
    this.dropped = true
  }

  slotOf(key: string): number | undefined {
    return this.#slots.get(key)
  }

  /** The slot for a key that has none yet. */
  add(key: string): number {
    const slot = this.#freed.pop() ?? this.#slots.size
    this.#slots.set(ownText(key), slot)
    return slot
  }

  delete(key: string): boolean {
    const slot = this.#slots.get(key)
    if (slot === undefined) return false
    this.#slots.delete(key)
    this.#freed.push(slot)
    for (const buckets of this.#kept.values()) buckets.clear(slot)
    return true
  }

  keys(): IterableIterator<string> {
    return this.#slots.keys()
  }

  step(index: number, slot: number, permits: number, now: number, maxWaitTicks: number, out: Step): void {
    const buckets = this.buckets[index] as Buckets
    buckets.step(slot, this.bands[index] as Band, permits, now, maxWaitTicks, out)
  }

  write(index: number, slot: number, { next }: Step): void {
    this.buckets[index]?.write(slot, next)
  }

  /** Gives back what the bands still hold of a grant; an identity without buckets stays without. */
  refund(key: string, permits: number, now: number, grantedAt?: readonly number[]): void {
    const slot = this.#slots.get(key)
    if (slot === undefined) return
    for (const [index, buckets] of this.buckets.entries())
      buckets.refund(slot, this.bands[index] as Band, permits, now, grantedAt?.[index] ?? now)
  }

  /** The instant from which this identity's buckets mean the same as none. */
  expiresAt(key: string): number {
    const slot = this.#slots.get(key) as number
    let latest = 0
    for (let i = 0; i < this.buckets.length; i++)
      latest = Math.max(latest, (this.buckets[i] as Buckets).expiresAt(slot, this.bands[i] as Band))
    return latest
  }

  /** Whether a request of this identity would be refused now. */
  isRefusing(key: string, now: number, scratch: Step): boolean {
    const slot = this.#slots.get(key) as number
    const permits = this.group?.permits ?? 1
    return this.bands.some((_, index) => {
      this.step(index, slot, permits, now, 0, scratch)
      return !scratch.allowed
    })
  }
}
