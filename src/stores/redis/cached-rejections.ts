import { cellsOf } from '../../algorithms/index.js'
import { newStep, type Step } from '../../core/algorithm.js'
import {
  type BandResult,
  type BucketGroup,
  bandCount,
  type Charge,
  type ChargeResult,
  type LeasingStore,
} from '../../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../../core/clock.js'
import { boundedKey, ownText } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'
import { backdatesOf, dueTick, hasMoved, hasSteppedBack, isUntouched, type Sighting } from './clock-steps.js'
import type { BucketState } from './decode.js'
import type { ChargeObserver } from './redis-buckets.js'
import type { Backdate } from './work.js'

export interface CachedRejectionsOptions {
  readonly clock?: Clock | undefined
  /** How many buckets are remembered at most; default 10 000. */
  readonly maxBuckets?: number
}

/** So that refunds and resets of other processes are noticed, a bucket is believed to be as it was for no longer. */
const believedForTicks = 1_000_000
/** Who asks again asks for all: meanwhile it is still believed, but not for ever, should there be no answer. */
const answeredWithinTicks = 100_000

interface Memory extends Sighting {
  /** Which counted: another than that of the rule, if the identity has an override. */
  readonly group: BucketGroup
  /** What was asked, and what each band said. */
  readonly permits: number
  readonly maxWaitTicks: number
  readonly said: readonly BandResult[]
  /** The tick of the clock here at which it was asked: since then at least as much time has passed for the store. */
  readonly askedAt: number
  /** Likewise, when the store was last asked again. */
  askedAgainAt: number
  /** The same bucket before the store's clock stepped back. It has gone on refilling from there. */
  readonly origin: Memory | undefined
}

/**
 * What buckets looked like when they last refused. A bucket that nobody gives anything back to only gets fuller by its own
 * refill, which the algorithm computes here as it would there; so as long as it says no, the store would say no, in the
 * same words. A yes is never believed: then the store is asked. A log is not at hand; the same question has the same
 * answer until the next of its entries leaves.
 */
export class CachedRejections implements ChargeObserver {
  readonly #clock: Clock
  readonly #most: number
  readonly #byGroup = new WeakMap<BucketGroup, Map<string, Memory>>()
  /** All of them, the oldest first. */
  readonly #ages = new Map<Memory, { readonly group: BucketGroup; readonly key: string }>()
  readonly #step: Step = newStep()
  readonly #cells = new Float64Array(5)

  constructor({ clock = systemClock, maxBuckets = 10_000 }: CachedRejectionsOptions = {}) {
    this.#clock = clock
    this.#most = maxBuckets
  }

  get size(): number {
    return this.#ages.size
  }

  /** What was granted or given back has changed the buckets. */
  granted(claims: readonly Pick<Charge, 'group' | 'key'>[]): void {
    if (this.#ages.size > 0) for (const { group, key } of claims) this.forget(group, key)
  }

  /** `states`: one per band of the first demand, then of the second, and so on. */
  refused(
    demands: readonly Charge[],
    result: ChargeResult,
    states: readonly BucketState[],
    askedAt: number,
    isPeek = false,
  ): readonly Backdate[] {
    const answeredAt = ticks(this.#clock)
    const { now } = result
    const backdates: Backdate[] = []
    let first = 0
    for (const demand of result.applied ?? demands) {
      const { group, key, permits, maxWaitTicks } = demand
      const last = first + group.bands.length
      const [own, said] = [states.slice(first, last), result.bands.slice(first, last)]
      first = last
      const before = this.#memoryOf(group, key)
      const origin = before && originOf(before, { group, states: own, now, askedAt })
      // A peek matters only if it has moved along what is remembered.
      if (isPeek && origin === undefined) continue
      this.forget(group, key)
      const due = origin && dueTick(origin, askedAt)
      if (origin !== undefined && due !== undefined && !this.#isRefusing(demand, origin, due)) {
        backdates.push(...backdatesOf(key, origin, own, due - now))
        continue
      }
      if (own.includes(null)) continue
      const askedAgainAt = Number.NEGATIVE_INFINITY
      const memory = { group, states: own, permits, maxWaitTicks, said, now, askedAt, answeredAt, askedAgainAt, origin }
      this.#remember(group, key, memory)
    }
    return backdates
  }

  /** What may refuse has changed. */
  forgetAll(): void {
    for (const { group, key } of [...this.#ages.values()]) this.#drop(group, key)
  }

  /** Of an identity with an override, too, it is its rule that will be asked for. */
  forget(group: BucketGroup, key: string): void {
    this.#drop(group, boundedKey(key))
  }

  #drop(group: BucketGroup, key: string): void {
    const memories = this.#byGroup.get(group.insteadOf ?? group)
    const memory = memories?.get(key)
    if (memory === undefined) return
    memories?.delete(key)
    this.#ages.delete(memory)
  }

  /** The refusal that the store would give now, if that is known for certain. */
  refusalOf(demands: readonly Charge[]): ChargeResult | undefined {
    if (this.#ages.size === 0) return undefined
    const here = ticks(this.#clock)
    const memories: Memory[] = []
    for (const demand of demands) {
      const memory = this.#recall(demand.group, demand.key, here)
      if (memory === undefined || !isBelieved(memory, here)) return undefined
      const { origin } = memory
      if (origin !== undefined && !this.#isRefusing(demand, origin, dueTick(origin, here))) return undefined
      memories.push(memory)
    }
    const now = Math.max(...memories.map((memory) => memory.now + here - memory.askedAt))
    return this.#refusal(demands, memories, now)
  }

  /** To be told of whatever is asked without being charged: if the clock has stepped back, that moves buckets along. */
  peeked(demands: readonly Charge[]): void {
    if (this.#ages.size === 0) return
    const here = ticks(this.#clock)
    for (const { group, key } of demands) this.#recall(group, key, here)
  }

  /** What is remembered, unless it is from a time that is still to come. */
  #recall(group: BucketGroup, key: string, here: number): Memory | undefined {
    const memory = this.#byGroup.get(group)?.get(boundedKey(key))
    if (memory === undefined || here >= memory.askedAt) return memory
    this.forget(group, key)
    return undefined
  }

  #refusal(demands: readonly Charge[], memories: readonly Memory[], now: number): ChargeResult | undefined {
    let granted = true
    const bands: BandResult[] = new Array(bandCount(memories))
    let index = 0
    for (const [i, demand] of demands.entries()) {
      const memory = memories[i] as Memory
      for (const place of memory.group.bands.keys()) {
        const said = this.#band(demand, memory, place, now)
        if (said === undefined) return undefined
        if (!said.allowed && !demand.shadow) granted = false
        bands[index++] = said
      }
    }
    if (granted) return undefined
    const applied = appliedTo(demands, memories)
    return { granted, now, bands, fromCache: true, ...(applied !== undefined && { applied }) }
  }

  /** In a refusal, what would have allowed is told as it stands. */
  #band({ permits, maxWaitTicks }: Charge, memory: Memory, place: number, now: number): BandResult | undefined {
    const band = memory.group.bands[place] as Band
    const state = memory.states[place] as readonly number[] | undefined
    if (cellsOf(band) !== undefined && memory.group.listed === undefined) {
      const said = this.#ask(band, state, permits, now, maxWaitTicks)
      return said.allowed ? this.#ask(band, state, 0, now, 0) : said
    }
    const [unchangedUntil = Number.POSITIVE_INFINITY] = state ?? []
    const isAskedAgain = permits === memory.permits && maxWaitTicks === memory.maxWaitTicks
    if (!isAskedAgain || now >= unchangedUntil) return undefined
    const said = memory.said[place] as BandResult
    const retryAfter = said.allowed ? 0 : said.retryAfter - (now - memory.now)
    return said.allowed || retryAfter > 0 ? { ...said, retryAfter, resetAt: Math.max(now, said.resetAt) } : undefined
  }

  #ask(
    band: Band,
    state: readonly number[] | undefined,
    permits: number,
    now: number,
    maxWaitTicks: number,
  ): BandResult {
    if (state !== undefined) this.#cells.set(state)
    cellsOf(band)?.step(this.#cells, state === undefined ? -1 : 0, band, permits, now, maxWaitTicks, this.#step)
    const { allowed, delay, retryAfter, remaining, resetAt } = this.#step
    return { allowed, delay, retryAfter, remaining, resetAt }
  }

  #memoryOf(group: BucketGroup, key: string): Memory | undefined {
    return this.#byGroup.get(group.insteadOf ?? group)?.get(boundedKey(key))
  }

  #isRefusing(demand: Charge, memory: Memory, now: number): boolean {
    return memory.group.bands.some((_, place) => this.#band(demand, memory, place, now)?.allowed === false)
  }

  #remember(group: BucketGroup, key: string, memory: Memory): void {
    const asked = group.insteadOf ?? group
    let memories = this.#byGroup.get(asked)
    if (memories === undefined) {
      memories = new Map()
      this.#byGroup.set(asked, memories)
    }
    const stored = ownText(boundedKey(key))
    memories.set(stored, memory)
    this.#ages.set(memory, { group, key: stored })
    if (this.#ages.size <= this.#most) return
    const [oldest] = this.#ages.values()
    if (oldest !== undefined) this.#drop(oldest.group, oldest.key)
  }
}

/** The bucket before the store's clock stepped back, if it did and nothing has happened to the bucket since. */
function originOf(
  before: Memory,
  { group, states, now, askedAt }: Pick<Memory, 'group' | 'states' | 'now' | 'askedAt'>,
): Memory | undefined {
  const origin = before.origin ?? (hasMoved({ states }) || hasSteppedBack(before, now, askedAt) ? before : undefined)
  if (origin === undefined || before.group !== group || group.listed !== undefined) return undefined
  return isUntouched(before, states) ? origin : undefined
}

/** If not, the caller asks again. */
function isBelieved(memory: Memory, here: number): boolean {
  if (here - memory.askedAt < believedForTicks) return true
  if (here - memory.askedAgainAt < answeredWithinTicks) return true
  memory.askedAgainAt = here
  return false
}

/** The demands as they were decided; `undefined` if no identity has an override. */
function appliedTo(demands: readonly Charge[], memories: readonly Memory[]): readonly Charge[] | undefined {
  if (memories.every(({ group }) => group.insteadOf === undefined)) return undefined
  return demands.map((demand, i) => ({ ...demand, group: (memories[i] as Memory).group }))
}

/** Answers what is known to be refused without asking the store, which tells `known` of its refusals. */
export function withCachedRejections(store: LeasingStore, known: CachedRejections): LeasingStore {
  return {
    lease: (request) => store.lease(request),
    settle: (settlements) => store.settle(settlements),
    charge(demands, peek) {
      if (peek) known.peeked(demands)
      const refusal = peek ? undefined : known.refusalOf(demands)
      return refusal === undefined ? store.charge(demands, peek) : Promise.resolve(refusal)
    },
    async refund(refunds) {
      known.granted(refunds)
      try {
        await store.refund(refunds)
      } finally {
        // An answer that was on its way meanwhile may not know of it.
        known.granted(refunds)
      }
    },
    async reset(group, key) {
      known.forget(group, key)
      try {
        await store.reset(group, key)
      } finally {
        known.forget(group, key)
      }
    },
    retire: (group) => store.retire?.(group),
    close: () => store.close(),
  }
}
