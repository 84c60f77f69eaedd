import { cellsOf } from '../algorithms/index.js'
import { newStep, type Step } from '../core/algorithm.js'
import {
  type BandResult,
  type BucketGroup,
  type BucketStore,
  bandCount,
  type ChargeResult,
  type Demand,
} from '../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../core/clock.js'
import type { Band } from '../core/rule.js'
import type { ChargeObserver } from './redis.js'
import type { BucketState } from './redis-work.js'

export interface KnownRefusalsOptions {
  readonly clock?: Clock | undefined
  /** How many buckets are remembered at most; default 10 000. */
  readonly maxBuckets?: number
}

/** So that refunds and resets of other processes are noticed, a bucket is believed to be as it was for no longer. */
const believedForTicks = 1_000_000

interface Memory {
  /** Per band of the group. */
  readonly states: readonly BucketState[]
  /** The store's tick when it refused. */
  readonly now: number
  /** The tick of the clock here at which it was asked: since then at least as much time has passed for the store. */
  readonly askedAt: number
}

/**
 * What buckets looked like when they last refused. A bucket that nobody gives anything back to only gets fuller by its own
 * refill, which the algorithm computes here as it would there; so as long as it says no, the store would say no, in the
 * same words. A yes is never believed: then the store is asked.
 */
export class KnownRefusals implements ChargeObserver {
  readonly #clock: Clock
  readonly #most: number
  readonly #byGroup = new WeakMap<BucketGroup, Map<string, Memory>>()
  /** All of them, the oldest first. */
  readonly #ages = new Map<Memory, { readonly group: BucketGroup; readonly key: string }>()
  readonly #step: Step = newStep()
  readonly #cells = new Float64Array(4)

  constructor({ clock = systemClock, maxBuckets = 10_000 }: KnownRefusalsOptions = {}) {
    this.#clock = clock
    this.#most = maxBuckets
  }

  get size(): number {
    return this.#ages.size
  }

  /** What was granted or given back has changed the buckets. */
  granted(claims: readonly Pick<Demand, 'group' | 'key'>[]): void {
    if (this.#ages.size > 0) for (const { group, key } of claims) this.forget(group, key)
  }

  /** `states`: one per band of the first demand, then of the second, and so on. */
  refused(demands: readonly Demand[], states: readonly BucketState[], now: number, askedAt: number): void {
    let first = 0
    for (const { group, key } of demands) {
      const own = states.slice(first, first + group.bands.length)
      first += group.bands.length
      this.forget(group, key)
      if (!own.includes(null)) this.#remember(group, key, { states: own, now, askedAt })
    }
  }

  forget(group: BucketGroup, key: string): void {
    const memories = this.#byGroup.get(group)
    const memory = memories?.get(key)
    if (memory === undefined) return
    memories?.delete(key)
    this.#ages.delete(memory)
  }

  /** The refusal that the store would give now, if that is known for certain. */
  refusalOf(demands: readonly Demand[]): ChargeResult | undefined {
    if (this.#ages.size === 0) return undefined
    const here = ticks(this.#clock)
    const memories: Memory[] = []
    for (const { group, key } of demands) {
      const memory = this.#byGroup.get(group)?.get(key)
      if (memory === undefined) return undefined
      const age = here - memory.askedAt
      if (age < 0 || age >= believedForTicks) return undefined
      memories.push(memory)
    }
    const now = Math.max(...memories.map((memory) => memory.now + here - memory.askedAt))
    return this.#refusal(demands, memories, now)
  }

  #refusal(demands: readonly Demand[], memories: readonly Memory[], now: number): ChargeResult | undefined {
    let granted = true
    const bands: BandResult[] = new Array(bandCount(demands))
    let index = 0
    for (const [i, { group, permits, patience, shadow }] of demands.entries())
      for (const [place, band] of group.bands.entries()) {
        const state = memories[i]?.states[place] as readonly number[] | undefined
        const said = this.#ask(band, state, permits, now, patience)
        if (!said.allowed && !shadow) granted = false
        // In a refusal, what would have allowed is told as it stands.
        bands[index++] = said.allowed ? { ...this.#ask(band, state, 0, now, 0) } : said
      }
    return granted ? undefined : { granted, now, bands, isUnasked: true }
  }

  #ask(band: Band, state: readonly number[] | undefined, permits: number, now: number, patience: number): BandResult {
    if (state !== undefined) this.#cells.set(state)
    cellsOf(band)?.step(this.#cells, state === undefined ? -1 : 0, band, permits, now, patience, this.#step)
    const { allowed, delay, retryAfter, remaining, resetAt } = this.#step
    return { allowed, delay, retryAfter, remaining, resetAt }
  }

  #remember(group: BucketGroup, key: string, memory: Memory): void {
    let memories = this.#byGroup.get(group)
    if (memories === undefined) {
      memories = new Map()
      this.#byGroup.set(group, memories)
    }
    memories.set(key, memory)
    this.#ages.set(memory, { group, key })
    if (this.#ages.size <= this.#most) return
    const [oldest] = this.#ages.values()
    if (oldest !== undefined) this.forget(oldest.group, oldest.key)
  }
}

/** Answers what is known to be refused without asking the store, which tells `known` of its refusals. */
export function withKnownRefusals(store: BucketStore, known: KnownRefusals): BucketStore {
  return {
    charge(demands, peek) {
      const refusal = peek ? undefined : known.refusalOf(demands)
      return refusal === undefined ? store.charge(demands, peek) : Promise.resolve(refusal)
    },
    async refund(refunds) {
      for (const { group, key } of refunds) known.forget(group, key)
      await store.refund(refunds)
      // An answer that was on its way meanwhile may not know of it.
      for (const { group, key } of refunds) known.forget(group, key)
    },
    async reset(group, key) {
      known.forget(group, key)
      await store.reset(group, key)
      known.forget(group, key)
    },
    retire: (group) => store.retire?.(group),
    close: () => store.close(),
  }
}
