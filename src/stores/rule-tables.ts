import { newStep } from '../core/algorithm.js'
import type { BucketGroup } from '../core/bucket-store.js'
import { type Candidate, type IsFree, NearestToFull } from './nearest-to-full.js'
import { RuleTable } from './rule-table.js'

/** How many identities one search for room looks at; stores of up to this size are searched completely. */
const searchLimit = 1024
/** How many it looks at in a larger store, once it is known that hardly any bucket is full. */
const glanceLimit = 16
/** For so long that is believed. */
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
 * The tables of all rules, bounded together. Identities whose buckets are full or expired go first, then those nearest
 * to it. One that is refusing is never forgotten to make room: that would hand it a fresh limit.
 */
export class RuleTables {
  readonly #maxKeys: number
  readonly #byName = new Map<string, RuleTable>()
  readonly #scratch = newStep()
  #size = 0
  #hand: Iterator<[RuleTable, string]> | undefined
  readonly #nearest = new NearestToFull()
  /** How many are still to be looked at until all have been, and until when that need not be done again. */
  #unseen = 0
  #seenUntil = Number.NEGATIVE_INFINITY
  #glances = 0
  /** Of the one that was forgotten last to make room. */
  #lastExpiresAt = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#size
  }

  of(group: BucketGroup): RuleTable {
    const { memo } = group
    if (memo?.owner !== this) return this.#find(group)
    const table = memo.note as RuleTable
    return table.group === group ? table : this.#find(group)
  }

  #find(group: BucketGroup): RuleTable {
    const { memo } = group
    const name = JSON.stringify([group.ruleSetId, group.ruleId, group.generation])
    const table = this.#byName.get(name) ?? new RuleTable(name)
    this.#byName.set(name, table)
    if (memo !== undefined) {
      memo.owner = this
      memo.note = table
    }
    return table.bind(group)
  }

  /** Whether so many new identities fit, if need be by forgetting others that are not among the spared. */
  makeRoom(needed: number, now: number, spare: Spare): boolean {
    const isFull = this.#size + needed > this.#maxKeys
    while (this.#size + needed > this.#maxKeys) if (!this.#evict(now, spare)) return false
    // Who passes over buckets that are full, and leaves them, has to search for them when there is no room.
    if (!isFull || this.#lastExpiresAt + graceTicks <= now) this.#sweep(now, spare)
    return true
  }

  add(table: RuleTable, key: string): number {
    this.#size += 1
    return table.add(key)
  }

  delete(table: RuleTable, key: string): void {
    if (!table.delete(key)) return
    this.#size -= 1
    if (table.size === 0) this.drop(table)
  }

  /** Forgets all identities of a rule at once. */
  drop(table: RuleTable): void {
    this.#size -= table.size
    table.letGo()
    this.#byName.delete(table.name)
  }

  clear(): void {
    for (const table of this.#byName.values()) table.letGo()
    this.#byName.clear()
    this.#hand = undefined
    this.#nearest.clear()
    this.#size = 0
  }

  #sweep(now: number, spare: Spare): void {
    for (let i = 0; i < sweepStep; i++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return
      if (table.expiresAt(key) + graceTicks <= now && !spare(table, key)) this.delete(table, key)
    }
  }

  /**
   * Forgets one that is full, or else the nearest to it. A store of many is looked through once, a part for each newcomer;
   * after that a newcomer costs a glance, so that a flood of them is not a way to keep this process busy.
   */
  #evict(now: number, spare: Spare): boolean {
    const isFree = (table: RuleTable, key: string, expiresAt: number): boolean =>
      !spare(table, key) && (expiresAt <= now || !this.#isRefusing(table, key, now))
    if (this.#size <= searchLimit) {
      this.#nearest.clear()
      return this.#search(this.#size, now, isFree) || this.#forget(this.#nearest.take(isFree))
    }
    if (this.#unseen === 0 && now >= this.#seenUntil) this.#unseen = this.#size
    const isFirstRound = this.#unseen > 0
    if (this.#search(isFirstRound ? searchLimit : glanceLimit, now, isFree)) return true
    if (isFirstRound) {
      this.#unseen = Math.max(0, this.#unseen - searchLimit)
      this.#seenUntil = now + beliefTicks
    }
    if (this.#forget(this.#nearest.take(isFree))) return true
    if (isFirstRound || this.#glances-- > 0) return false
    this.#glances = glancesAfterNone
    return this.#search(searchLimit, now, isFree) || this.#forget(this.#nearest.take(isFree))
  }

  /** Forgets the first one that is full, and remembers those that are nearest to it. */
  #search(limit: number, now: number, isFree: IsFree): boolean {
    for (let looked = 0; looked < limit; looked++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return false
      const expiresAt = table.expiresAt(key)
      if ((expiresAt > now && !this.#nearest.wants(expiresAt)) || !isFree(table, key, expiresAt)) continue
      if (expiresAt <= now) return this.#forget({ table, key, expiresAt })
      this.#nearest.add({ table, key, expiresAt })
    }
    return false
  }

  #isRefusing(table: RuleTable, key: string, now: number): boolean {
    return key === overflowKey || table.isRefusing(key, now, this.#scratch)
  }

  #forget(found: Candidate | undefined): boolean {
    if (found === undefined) return false
    this.#lastExpiresAt = found.expiresAt
    this.delete(found.table, found.key)
    return true
  }

  /** The next identity in an endless round over all of them. */
  #next(): [RuleTable, string] | undefined {
    if (this.#size === 0) return undefined
    let step = this.#hand?.next()
    if (step === undefined || step.done) {
      this.#hand = everyKey(this.#byName)
      step = this.#hand.next()
    }
    return step.done ? undefined : step.value
  }
}

function* everyKey(tables: ReadonlyMap<string, RuleTable>): Generator<[RuleTable, string]> {
  for (const table of tables.values())
    for (const key of table.keys()) {
      if (table.dropped) break
      yield [table, key]
    }
}
