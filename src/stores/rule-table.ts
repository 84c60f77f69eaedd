import { type AnyAlgorithm, algorithmOf } from '../algorithms/index.js'
import type { Buckets, Step } from '../core/algorithm.js'
import type { BucketGroup, Demand } from '../core/bucket-store.js'
import type { Band } from '../core/rule.js'

interface Column {
  readonly band: Band
  readonly algorithm: AnyAlgorithm
  readonly buckets: Buckets<unknown, unknown>
}

/**
 * All buckets of one rule: an identity has one slot, which is the same in the column of every band. So a decision looks
 * an identity up once, however many bands it has.
 */
export class RuleTable {
  readonly name: string
  /** Set when the table was empty and has been let go; whoever still holds it must look again. */
  dropped = false
  readonly #slots = new Map<string, number>()
  readonly #freed: number[] = []
  /** By label and algorithm, so that an edited rule finds the levels of the bands it kept. */
  readonly #kept = new Map<string, Buckets<unknown, unknown>>()
  #columns: Column[] = []
  #group: BucketGroup | undefined

  constructor(name: string) {
    this.name = name
  }

  get size(): number {
    return this.#slots.size
  }

  /** Takes on the bands of `group`, which may have changed since the last time. */
  bind(group: BucketGroup): this {
    if (group === this.#group) return this
    this.#group = group
    this.#columns = group.bands.map((band) => {
      const algorithm = algorithmOf(band)
      const name = JSON.stringify([band.label, band.algorithm, band.refill])
      const buckets = this.#kept.get(name) ?? algorithm.createBuckets()
      this.#kept.set(name, buckets)
      return { band, algorithm, buckets }
    })
    return this
  }

  slotOf(key: string): number | undefined {
    return this.#slots.get(key)
  }

  /** The slot for a key that has none yet. */
  add(key: string): number {
    const slot = this.#freed.pop() ?? this.#slots.size
    this.#slots.set(key, slot)
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

  /** Steps every band and notes what each says; true if all allow. A slot below 0 is an identity without buckets. */
  step(slot: number, { permits, patience }: Demand, now: number, bands: Step<unknown>[], first: number): boolean {
    let allowed = true
    for (let i = 0; i < this.#columns.length; i++) {
      const step = this.stepBand(i, slot, permits, now, patience)
      bands[first + i] = step
      if (!step.allowed) allowed = false
    }
    return allowed
  }

  stepBand(index: number, slot: number, permits: number, now: number, patience: number): Step<unknown> {
    const { algorithm, band, buckets } = this.#columns[index] as Column
    return algorithm.step(slot < 0 ? undefined : buckets.read(slot), band, permits, now, patience)
  }

  /**
   * Looks without charging. A change then means that time has stepped back, and the bucket moves along. Bands that would
   * have allowed are reported as they stand, unless `keep` says that their answer is to be kept.
   */
  look(slot: number, now: number, bands: Step<unknown>[], first: number, keep: boolean): void {
    for (let i = 0; i < this.#columns.length; i++) {
      const said = bands[first + i] as Step<unknown>
      if (!said.allowed && said.change === undefined) continue
      const untouched = this.stepBand(i, slot, 0, now, 0)
      if (untouched.change !== undefined) this.write(slot, i, untouched.change)
      if (said.allowed && !keep) bands[first + i] = untouched
    }
  }

  write(slot: number, index: number, change: unknown): void {
    this.#columns[index]?.buckets.write(slot, change)
  }

  /** Gives back what the bands still hold of a grant; an identity without buckets stays without. */
  refund(key: string, permits: number, now: number, grantedAt?: readonly number[]): void {
    const slot = this.#slots.get(key)
    if (slot === undefined) return
    for (const [index, { algorithm, band, buckets }] of this.#columns.entries()) {
      const state = buckets.read(slot)
      if (state === undefined) continue
      const change =
        algorithm.refund(state, band, permits, now, grantedAt?.[index] ?? now) ??
        algorithm.step(state, band, 0, now, 0).change
      if (change !== undefined) buckets.write(slot, change)
    }
  }

  /** The instant from which this identity's buckets mean the same as none. */
  expiresAt(key: string): number {
    const slot = this.#slots.get(key) as number
    let latest = 0
    for (const { algorithm, band, buckets } of this.#columns) {
      const state = buckets.read(slot)
      if (state !== undefined) latest = Math.max(latest, algorithm.expiresAt(state, band))
    }
    return latest
  }

  /** Whether a request of this identity would be refused now. */
  isRefusing(key: string, now: number): boolean {
    const slot = this.#slots.get(key) as number
    const permits = this.#group?.permits ?? 1
    return this.#columns.some((_, index) => !this.stepBand(index, slot, permits, now, 0).allowed)
  }
}
