import { newStep } from '../../core/algorithm.js'
import { type MayGo, NearestToFull } from './nearest-to-full.js'
import type { RuleTable, RuleTables } from './rule-tables.js'

/** How many identities a thorough search looks at; a store of up to this size is searched completely. */
const searchLimit = 1024
/** How many a glance looks at. */
const glanceLimit = 16
/** For so long it is believed what a survey of a large store has found. */
const beliefTicks = 10_000_000
/** After a search in which all refuse, so many newcomers are content with a glance. */
const glancesAfterNone = 64
/** Looked at in passing with every new identity, so that what nobody uses any more is forgotten without a timer. */
const sweepStep = 2
/** A bucket that has been full for less than this stays: whoever came a moment ago is likely to come again. */
const graceTicks = 60_000_000

/** Whom identities count against that find no room. One that is really called this shares with them. */
export const overflowKey = '\u0000overflow'

type Spare = (table: RuleTable, key: string) => boolean

/**
 * Keeps the tables within their bound, by forgetting identities. Those whose buckets are full go first, because nothing is
 * lost with them, then those nearest to it. One that is refusing never goes: that would hand it a fresh limit.
 *
 * An order of who is nearest to full would have to be kept by every decision. Instead a hand goes round over all identities,
 * and each newcomer pays for a part of its way: the first full one that it comes to is forgotten. If it comes to none, one of
 * the nearest goes that it has passed lately.
 */
export class Eviction {
  readonly #tables: RuleTables
  readonly #maxKeys: number
  readonly #nearest = new NearestToFull()
  readonly #scratch = newStep()
  #hand: Iterator<[RuleTable, string]> | undefined
  /** How many a survey has still to look at, and until when the last one is believed. */
  #unseen = 0
  #believedUntil = Number.NEGATIVE_INFINITY
  /** How many newcomers are still content with a glance in which all refuse. */
  #glances = 0
  /** Of the one that was forgotten last to make room. */
  #lastExpiresAt = 0

  constructor(tables: RuleTables, maxKeys: number) {
    this.#tables = tables
    this.#maxKeys = maxKeys
  }

  /** Whether so many new identities fit, if need be by forgetting others that are not among the spared. */
  makeRoom(needed: number, now: number, spare: Spare): boolean {
    const hadRoom = this.#hasRoom(needed)
    while (!this.#hasRoom(needed)) if (!this.#evict(now, spare)) return false
    // A sweep leaves behind what has been full for a short time only, and when there is no room, that is what is looked for.
    if (hadRoom || this.#lastExpiresAt + graceTicks <= now) this.#sweep(now, spare)
    return true
  }

  clear(): void {
    this.#hand = undefined
    this.#nearest.clear()
  }

  #hasRoom(needed: number): boolean {
    return this.#tables.size + needed <= this.#maxKeys
  }

  /** Forgets one; false if none was found that may go. */
  #evict(now: number, spare: Spare): boolean {
    const mayGo: MayGo = (table, key, expiresAt) =>
      !spare(table, key) && (expiresAt <= now || !this.#isRefusing(table, key, now))
    const { size } = this.#tables
    if (size <= searchLimit) {
      this.#nearest.clear()
      return this.#search(size, now, mayGo)
    }
    if (this.#unseen === 0 && now >= this.#believedUntil) this.#unseen = size
    return this.#unseen > 0 ? this.#survey(now, mayGo) : this.#glance(now, mayGo)
  }

  /** A large store is looked through once, a part for each newcomer, because any of its buckets may be full. */
  #survey(now: number, mayGo: MayGo): boolean {
    if (this.#forgetFull(searchLimit, now, mayGo)) return true
    this.#unseen = Math.max(0, this.#unseen - searchLimit)
    this.#believedUntil = now + beliefTicks
    return this.#forgetNearest(mayGo)
  }

  /** Then hardly any is full, and a newcomer costs little: a flood of them is not a way to keep this process busy. */
  #glance(now: number, mayGo: MayGo): boolean {
    if (this.#search(glanceLimit, now, mayGo)) return true
    if (this.#glances > 0) {
      this.#glances -= 1
      return false
    }
    this.#glances = glancesAfterNone
    return this.#search(searchLimit, now, mayGo)
  }

  #search(limit: number, now: number, mayGo: MayGo): boolean {
    return this.#forgetFull(limit, now, mayGo) || this.#forgetNearest(mayGo)
  }

  /** Forgets the first one that is full, and remembers those that are nearest to it. */
  #forgetFull(limit: number, now: number, mayGo: MayGo): boolean {
    for (let looked = 0; looked < limit; looked++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return false
      const expiresAt = table.expiresAt(key)
      const isFull = expiresAt <= now
      // Whether it may go is asked last: that costs more than all else.
      if ((!isFull && !this.#nearest.wants(expiresAt)) || !mayGo(table, key, expiresAt)) continue
      if (isFull) return this.#forget(table, key, expiresAt)
      this.#nearest.add({ table, key, expiresAt })
    }
    return false
  }

  #forgetNearest(mayGo: MayGo): boolean {
    const found = this.#nearest.take(mayGo)
    return found !== undefined && this.#forget(found.table, found.key, found.expiresAt)
  }

  #forget(table: RuleTable, key: string, expiresAt: number): true {
    this.#lastExpiresAt = expiresAt
    this.#tables.delete(table, key)
    return true
  }

  #isRefusing(table: RuleTable, key: string, now: number): boolean {
    return key === overflowKey || table.isDenying(key, now, this.#scratch)
  }

  #sweep(now: number, spare: Spare): void {
    for (let i = 0; i < sweepStep; i++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return
      if (table.expiresAt(key) + graceTicks <= now && !spare(table, key)) this.#tables.delete(table, key)
    }
  }

  /** Where the hand comes to next, in an endless round over all identities. */
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
