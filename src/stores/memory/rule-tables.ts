import type { BucketGroup } from '../../core/bucket-store.js'
import { RuleTable } from './rule-table.js'

/** The tables of all rules. A rule has one from its first identity to its last. */
export class RuleTables {
  readonly #byName = new Map<string, RuleTable>()
  #size = 0

  /** How many identities there are in all of them. */
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
    const name = nameOf(group)
    const table = this.#byName.get(name) ?? new RuleTable(name)
    this.#byName.set(name, table)
    if (memo !== undefined) {
      memo.owner = this
      memo.note = table
    }
    return table.bind(group)
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

  /** Drops the table of a rule, if it has one: thousands of rules that are edited at once may have none. */
  retire(group: BucketGroup): void {
    const table = this.#byName.size === 0 ? undefined : this.#byName.get(nameOf(group))
    if (table !== undefined) this.drop(table)
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
    this.#size = 0
  }

  /** Every identity with its table. Others may come and go meanwhile. */
  *entries(): Generator<[RuleTable, string]> {
    for (const table of this.#byName.values())
      for (const key of table.keys()) {
        if (table.dropped) break
        yield [table, key]
      }
  }
}

const nameOf = ({ ruleSetId, ruleId, generation }: BucketGroup): string =>
  JSON.stringify([ruleSetId, ruleId, generation])
