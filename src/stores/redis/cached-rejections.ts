import { cellsOf } from '../../algorithms/index.js'
import { newStep, type Step } from '../../core/algorithm.js'
import {
  type BandResult,
  type BucketGroup,
  bandCount,
  type Charge,
  type ChargeResult,
  type RejectionCache,
} from '../../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../../core/clock.js'
import { boundedKey, ownText } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'
import { backdatesOf, dueTick, hasMoved, hasSteppedBack, isUntouched, type Sighting } from './clock-steps.js'
import type { BucketState } from './decode.js'
import type { Backdate } from './operation.js'

export interface CachedRejectionsOptions {
  readonly clock?: Clock | undefined
  /** Maximum number of cached buckets; default 10,000. */
  readonly maxBuckets?: number
}

/** An entry is used for one second, so that refunds and resets by other processes take effect. */
const maxAgeTicks = 1_000_000
/** While one call refreshes an old entry, others use it for this long, even if the call never ends. */
const refreshTicks = 100_000

interface Entry extends Sighting {
  /** The group that was charged: that of the override if the key has one. */
  readonly group: BucketGroup
  /** The rejected charge and the results of its bands. */
  readonly permits: number
  readonly maxWaitTicks: number
  readonly results: readonly BandResult[]
  /** The local tick at which the call was sent. At least as much time has passed for the store since then. */
  readonly sentAt: number
  /** The local tick at which the last refresh was started. */
  refreshedAt: number
  /** The bucket before the store's clock stepped back. It has continued to refill since then. */
  readonly origin: Entry | undefined
  /** The store's tick at which the ban of the key ends; 0 without a ban. */
  readonly bannedUntil: number
}

/**
 * Caches the state of buckets that rejected a charge. Without refunds, a bucket changes only by its own refill, which the
 * algorithm computes here exactly as in Redis. As long as the result is a rejection, Redis would return the same one, so it
 * is not called. A charge that would be granted always goes to Redis. The state of a log is not cached; instead, the same
 * charge is rejected until the next entry of the log expires.
 */
export class CachedRejections implements RejectionCache {
  readonly #clock: Clock
  readonly #maxBuckets: number
  /** By rule and key, because the bands of a single call use the buckets of the rule. */
  readonly #byRule = new WeakMap<BucketGroup, Map<string, Entry>>()
  /** All entries, oldest first. */
  readonly #entries = new Map<Entry, { readonly group: BucketGroup; readonly key: string }>()
  readonly #step: Step = newStep()
  readonly #cells = new Float64Array(5)

  constructor({ clock = systemClock, maxBuckets = 10_000 }: CachedRejectionsOptions = {}) {
    this.#clock = clock
    this.#maxBuckets = maxBuckets
  }

  get size(): number {
    return this.#entries.size
  }

  /**
   * Returns the rejection that Redis would return now, or undefined if Redis must be called. A peek always goes to Redis,
   * but must be announced: if the clock of this process has stepped back, entries from the future are removed.
   */
  find(charges: readonly Charge[], peek: boolean): ChargeResult | undefined {
    if (this.#entries.size === 0) return undefined
    const localNow = ticks(this.#clock)
    const entries: Entry[] = []
    let isComplete = !peek
    for (const charge of charges) {
      const entry = this.#current(charge.group, charge.key, localNow)
      if (peek) continue
      isComplete = entry !== undefined && isFresh(entry, localNow) && this.#stillRejects(charge, entry.origin, localNow)
      if (!isComplete) break
      entries.push(entry as Entry)
    }
    if (!isComplete) return undefined
    const now = Math.max(...entries.map((entry) => entry.now + localNow - entry.sentAt))
    return this.#rejection(charges, entries, now)
  }

  /** Removes the entries of buckets that were charged, refunded or reset. */
  bucketsChanged(buckets: readonly Pick<Charge, 'group' | 'key'>[]): void {
    if (this.#entries.size > 0) for (const { group, key } of buckets) this.#remove(group, boundedKey(key))
  }

  /**
   * Caches a rejection. `states` are the buckets of all bands, and `sentAt` is the local tick at which the call was sent.
   * Returns the buckets that must be backdated before the call is repeated, because the store's clock has stepped back;
   * usually none.
   */
  record(
    charges: readonly Charge[],
    result: ChargeResult,
    states: readonly BucketState[],
    sentAt: number,
    isPeek = false,
    bannedUntil?: readonly number[],
  ): readonly Backdate[] {
    const answeredAt = ticks(this.#clock)
    const { now } = result
    const backdates: Backdate[] = []
    let first = 0
    for (const [i, charge] of (result.applied ?? charges).entries()) {
      const { group, key, permits, maxWaitTicks, shadow } = charge
      const last = first + group.bands.length
      const [ownStates, results] = [states.slice(first, last), result.bands.slice(first, last)]
      first = last
      const cacheKey = boundedKey(key)
      const before = this.#byRule.get(ruleOf(group))?.get(cacheKey)
      const origin = before && originOf(before, { group, states: ownStates, now, sentAt })
      // A peek matters only if the store has moved a cached bucket to its new time.
      if (isPeek && origin === undefined) continue
      this.#remove(group, cacheKey)
      if (origin !== undefined && !this.#stillRejects(charge, origin, sentAt)) {
        backdates.push(...backdatesOf(key, origin, ownStates, dueTick(origin, sentAt) - now))
        continue
      }
      const until = bannedUntil?.[i] ?? 0
      if (until === 0 && ownStates.includes(null)) continue
      // Without a ban, the store counts every rejection.
      if (until === 0 && group.ban !== undefined && !shadow && results.some(({ allowed }) => !allowed)) continue
      const refreshedAt = Number.NEGATIVE_INFINITY
      const times = { now, sentAt, answeredAt, refreshedAt }
      this.#add(cacheKey, {
        group,
        states: ownStates,
        permits,
        maxWaitTicks,
        results,
        ...times,
        origin,
        bannedUntil: until,
      })
    }
    return backdates
  }

  /** Removes all entries, because an override has changed. */
  clear(): void {
    for (const { group, key } of [...this.#entries.values()]) this.#remove(group, key)
  }

  #remove(group: BucketGroup, key: string): void {
    const entries = this.#byRule.get(ruleOf(group))
    const entry = entries?.get(key)
    if (entry === undefined) return
    entries?.delete(key)
    this.#entries.delete(entry)
  }

  /** Returns the entry of a bucket, and removes it if it is from the future. */
  #current(group: BucketGroup, key: string, localNow: number): Entry | undefined {
    const cacheKey = boundedKey(key)
    const entry = this.#byRule.get(ruleOf(group))?.get(cacheKey)
    if (entry === undefined || !isOf(entry, group)) return undefined
    if (localNow >= entry.sentAt) return entry
    this.#remove(group, cacheKey)
    return undefined
  }

  #rejection(charges: readonly Charge[], entries: readonly Entry[], now: number): ChargeResult | undefined {
    let granted = true
    const bands: BandResult[] = new Array(bandCount(entries))
    let index = 0
    for (const [i, charge] of charges.entries()) {
      const entry = entries[i] as Entry
      for (const band of entry.group.bands.keys()) {
        const result = this.#band(charge, entry, band, now)
        if (result === undefined) return undefined
        if (!result.allowed && !charge.shadow) {
          // The store counts every rejection by a rule with a ban.
          if (charge.group.ban !== undefined && entry.bannedUntil === 0) return undefined
          granted = false
        }
        bands[index++] = result
      }
    }
    if (granted) return undefined
    const applied = appliedCharges(charges, entries)
    return { granted, now, bands, fromCache: true, ...(applied !== undefined && { applied }) }
  }

  /** Returns the result of a band. In a rejection, a band that would grant reports its unchanged state. */
  #band(charge: Charge, entry: Entry, index: number, now: number): BandResult | undefined {
    const { bannedUntil } = entry
    if (bannedUntil === 0 || charge.shadow) return this.#bandOf(charge, entry, index, now)
    if (now >= bannedUntil) return undefined
    const result = this.#bandOf(charge, entry, index, now) ?? bandOfSameCharge(charge, entry, index, now)
    if (result === undefined) return undefined
    const retryAfter = Math.max(result.retryAfter, bannedUntil - now)
    return { allowed: false, delay: 0, retryAfter, remaining: 0, resetAt: result.resetAt, banned: true }
  }

  /** The result of the band itself. */
  #bandOf({ permits, maxWaitTicks }: Charge, entry: Entry, index: number, now: number): BandResult | undefined {
    const band = entry.group.bands[index] as Band
    const state = entry.states[index]
    if (state === null) return undefined
    if (cellsOf(band) !== undefined && entry.group.listed === undefined) {
      const result = this.#compute(band, state, permits, now, maxWaitTicks)
      return result.allowed ? this.#compute(band, state, 0, now, 0) : result
    }
    const [unchangedUntil = Number.POSITIVE_INFINITY] = state ?? []
    const isSameCharge = permits === entry.permits && maxWaitTicks === entry.maxWaitTicks
    if (!isSameCharge || now >= unchangedUntil) return undefined
    const result = entry.results[index] as BandResult
    const retryAfter = result.allowed ? 0 : result.retryAfter - (now - entry.now)
    return result.allowed || retryAfter > 0
      ? { ...result, retryAfter, resetAt: Math.max(now, result.resetAt) }
      : undefined
  }

  #compute(
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

  /** True if there is no `origin`, or if its bucket would also reject at this local tick. */
  #stillRejects(charge: Charge, origin: Entry | undefined, localTick: number): boolean {
    if (origin === undefined) return true
    const now = dueTick(origin, localTick)
    return origin.group.bands.some((_, index) => this.#band(charge, origin, index, now)?.allowed === false)
  }

  #add(key: string, entry: Entry): void {
    const { group } = entry
    const rule = ruleOf(group)
    let entries = this.#byRule.get(rule)
    if (entries === undefined) {
      entries = new Map()
      this.#byRule.set(rule, entries)
    }
    const ownKey = ownText(key)
    entries.set(ownKey, entry)
    this.#entries.set(entry, { group, key: ownKey })
    if (this.#entries.size <= this.#maxBuckets) return
    const [oldest] = this.#entries.values()
    if (oldest !== undefined) this.#remove(oldest.group, oldest.key)
  }
}

/** The group of the rule whose buckets a charge uses, also if the key has an override or the call has bands of its own. */
function ruleOf(group: BucketGroup): BucketGroup {
  const charged = group.insteadOf ?? group
  return charged.rule ?? charged
}

/** True if the entry belongs to charges of this group. Charges with other bands have other groups. */
const isOf = ({ group }: Entry, charged: BucketGroup): boolean => (group.insteadOf ?? group) === charged

/** Returns the bucket before the store's clock stepped back, if it did and the bucket has not been used since. */
function originOf(
  before: Entry,
  { group, states, now, sentAt }: Pick<Entry, 'group' | 'states' | 'now' | 'sentAt'>,
): Entry | undefined {
  const origin = before.origin ?? (hasMoved({ states }) || hasSteppedBack(before, now, sentAt) ? before : undefined)
  if (origin === undefined || before.group !== group || group.listed !== undefined) return undefined
  return isUntouched(before, states) ? origin : undefined
}

/** The result of the rejected charge, at a later time. During a ban, that of a band whose state is unknown has no other effect. */
function bandOfSameCharge(
  { permits, maxWaitTicks }: Charge,
  { permits: before, maxWaitTicks: maxWaitBefore, results, now: at }: Entry,
  index: number,
  now: number,
): BandResult | undefined {
  if (permits !== before || maxWaitTicks !== maxWaitBefore) return undefined
  const result = results[index] as BandResult
  return { ...result, retryAfter: result.retryAfter - (now - at), resetAt: Math.max(now, result.resetAt) }
}

/** If this returns false, the caller refreshes the entry. */
function isFresh(entry: Entry, localNow: number): boolean {
  if (localNow - entry.sentAt < maxAgeTicks || localNow - entry.refreshedAt < refreshTicks) return true
  entry.refreshedAt = localNow
  return false
}

/** Returns the charges as they were decided, or undefined if no key has an override. */
function appliedCharges(charges: readonly Charge[], entries: readonly Entry[]): readonly Charge[] | undefined {
  if (entries.every(({ group }) => group.insteadOf === undefined)) return undefined
  return charges.map((charge, i) => ({ ...charge, group: (entries[i] as Entry).group }))
}
