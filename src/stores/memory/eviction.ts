import { newStep } from '../../core/algorithm.js'
import { type CanEvict, NearestToFull } from './nearest-to-full.js'
import type { RuleTable, RuleTables } from './rule-tables.js'

/** Keys inspected by a full search. Stores up to this size are searched completely. */
const searchLimit = 1024
/** Keys inspected by a short search. */
const shortSearchLimit = 16
/** How long the result of a survey of a large store is valid. */
const surveyTicks = 10_000_000
/** After a full search in which all keys are denying, this many new keys get only a short search. */
const shortSearchesAfterFailure = 64
/** Keys inspected for every new key, so that unused keys are removed without a timer. */
const sweepStep = 2
/** A bucket that has been full for less than this is not swept, because its key is likely to be used again. */
const graceTicks = 60_000_000

/** The shared key of all keys for which there is no room. A key with exactly this name shares its bucket. */
export const overflowKey = '\u0000overflow'

type IsInUse = (table: RuleTable, key: string) => boolean

/**
 * Limits the number of keys by evicting some. Keys with full buckets are evicted first, because this loses nothing, then those
 * closest to full. A key that is denying is never evicted, because it would get a new limit.
 *
 * An order by closeness to full would have to be updated by every decision. Instead, a clock hand goes round over all keys, and
 * every new key moves it: the first full key that it passes is evicted. If it passes none, one of the closest keys that it has
 * passed recently is evicted.
 */
export class Eviction {
  readonly #tables: RuleTables
  readonly #maxKeys: number
  readonly #nearest = new NearestToFull()
  readonly #scratch = newStep()
  #hand: Iterator<[RuleTable, string]> | undefined
  /** Keys that the current survey has yet to inspect, and the tick until which the last survey is valid. */
  #unsurveyed = 0
  #surveyValidUntil = Number.NEGATIVE_INFINITY
  /** New keys that still get only a short search. */
  #shortSearches = 0
  /** The expiry of the key that was evicted last. */
  #lastExpiresAt = 0

  constructor(tables: RuleTables, maxKeys: number) {
    this.#tables = tables
    this.#maxKeys = maxKeys
  }

  /** Makes room for `needed` new keys by evicting keys that are not in use. Returns false if that is impossible. */
  makeRoom(needed: number, now: number, isInUse: IsInUse): boolean {
    const hadRoom = this.#hasRoom(needed)
    while (!this.#hasRoom(needed)) if (!this.#evict(now, isInUse)) return false
    // A sweep leaves behind what has been full for a short time only, and when there is no room, that is what is inspected for.
    if (hadRoom || this.#lastExpiresAt + graceTicks <= now) this.#sweep(now, isInUse)
    return true
  }

  clear(): void {
    this.#hand = undefined
    this.#nearest.clear()
  }

  #hasRoom(needed: number): boolean {
    return this.#tables.size + needed <= this.#maxKeys
  }

  /** Evicts one key. Returns false if none can be evicted. */
  #evict(now: number, isInUse: IsInUse): boolean {
    const canEvict: CanEvict = (table, key, expiresAt) =>
      !isInUse(table, key) && (expiresAt <= now || !this.#isDenying(table, key, now))
    const { size } = this.#tables
    if (size <= searchLimit) {
      this.#nearest.clear()
      return this.#search(size, now, canEvict)
    }
    if (this.#unsurveyed === 0 && now >= this.#surveyValidUntil) this.#unsurveyed = size
    return this.#unsurveyed > 0 ? this.#survey(now, canEvict) : this.#shortSearch(now, canEvict)
  }

  /** A large store is inspected through once, a part for each newcomer, because any of its buckets may be full. */
  #survey(now: number, canEvict: CanEvict): boolean {
    if (this.#evictFull(searchLimit, now, canEvict)) return true
    this.#unsurveyed = Math.max(0, this.#unsurveyed - searchLimit)
    this.#surveyValidUntil = now + surveyTicks
    return this.#evictNearest(canEvict)
  }

  /** After a survey few buckets are full. Short searches bound the CPU time of a flood of new keys. */
  #shortSearch(now: number, canEvict: CanEvict): boolean {
    if (this.#search(shortSearchLimit, now, canEvict)) return true
    if (this.#shortSearches > 0) {
      this.#shortSearches -= 1
      return false
    }
    this.#shortSearches = shortSearchesAfterFailure
    return this.#search(searchLimit, now, canEvict)
  }

  #search(limit: number, now: number, canEvict: CanEvict): boolean {
    return this.#evictFull(limit, now, canEvict) || this.#evictNearest(canEvict)
  }

  /** Evicts the first full key, and records the keys that are closest to full. */
  #evictFull(limit: number, now: number, canEvict: CanEvict): boolean {
    for (let inspected = 0; inspected < limit; inspected++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return false
      const expiresAt = table.expiresAt(key)
      const isFull = expiresAt <= now
      // Checked last, because it is the most expensive check.
      if ((!isFull && !this.#nearest.wants(expiresAt)) || !canEvict(table, key, expiresAt)) continue
      if (isFull) return this.#remove(table, key, expiresAt)
      this.#nearest.add({ table, key, expiresAt })
    }
    return false
  }

  #evictNearest(canEvict: CanEvict): boolean {
    const candidate = this.#nearest.take(canEvict)
    return candidate !== undefined && this.#remove(candidate.table, candidate.key, candidate.expiresAt)
  }

  #remove(table: RuleTable, key: string, expiresAt: number): true {
    this.#lastExpiresAt = expiresAt
    this.#tables.delete(table, key)
    return true
  }

  #isDenying(table: RuleTable, key: string, now: number): boolean {
    return key === overflowKey || table.isDenying(key, now, this.#scratch)
  }

  #sweep(now: number, isInUse: IsInUse): void {
    for (let i = 0; i < sweepStep; i++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return
      if (table.expiresAt(key) + graceTicks <= now && !isInUse(table, key)) this.#tables.delete(table, key)
    }
  }

  /** The next key under the clock hand, in an endless round over all keys. */
  #next(): [RuleTable, string] | undefined {
    if (this.#tables.size === 0) return undefined
    let step = this.#hand?.next()
    if (step === undefined || step.done) {
      this.#hand = this.#tables.entries()
      step = this.#hand.next()
    }
    return step.done ? undefined : step.value
  }
}
