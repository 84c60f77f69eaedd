import { newStep } from '../core/algorithm.js'
import type { BucketGroup } from '../core/bucket-store.js'
import { RuleTable } from './rule-table.js'

/** How many identities one search for room looks at; stores of up to this size are searched completely. */
const searchLimit = 1024
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
    this.#sweep(now, spare)
    while (this.#size + needed > this.#maxKeys) if (!this.#evict(now, spare)) return false
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
    this.#size = 0
  }

  #sweep(now: number, spare: Spare): void {
    for (let i = 0; i < sweepStep; i++) {
      const [table, key] = this.#next() ?? []
      if (table === undefined || key === undefined) return
      if (table.expiresAt(key) + graceTicks <= now && !spare(table, key)) this.delete(table, key)
    }
  }

  #evict(now: number, spare: Spare): boolean {
    let best: [RuleTable, string] | undefined
    let bestExpiry = Number.POSITIVE_INFINITY
    for (let looked = Math.min(searchLimit, this.#size); looked > 0; looked--) {
      const next = this.#next()
      if (next === undefined) break
      const expiry = next[0].expiresAt(next[1])
      if (expiry >= bestExpiry || spare(...next)) continue
      if (expiry > now && (next[1] === overflowKey || next[0].isRefusing(next[1], now, this.#scratch))) continue
      best = next
      bestExpiry = expiry
      if (expiry <= now) break
    }
    if (best !== undefined) this.delete(...best)
    return best !== undefined
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
