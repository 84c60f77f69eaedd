import { createBuckets, definitionOf, ReservedBuckets, Rows } from '../../algorithms/index.js'
import type { Buckets, Step } from '../../core/algorithm.js'
import { takeHolds } from '../../core/algorithm-traits.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import type { HoldId } from '../../core/holds/hold-storage.js'
import { ownText } from '../../core/keys/bounded-key.js'
import { noneReserved, type ReservedPermits } from '../../core/reservations/reservation-storage.js'
import type { Band } from '../../core/rule.js'

/**
 * All buckets of one rule. A key has the same slot in the buckets of every band, so a decision looks the key up once, whatever
 * the number of bands.
 */
export class RuleTable {
  readonly name: string
  /** The group whose bands are in use; undefined after the table was dropped. */
  group: BucketGroup | undefined
  /** True if only the bands limit the keys (no overrides, ban or holds), and no buckets are to be converted. */
  isPlain = false
  bands: readonly Band[] = []
  /** One per band. */
  buckets: readonly Buckets[] = []
  /** While `bands` are those of a single call: the bands of the rule, and their buckets. */
  #ruleBuckets: readonly (readonly [Buckets, Band])[] = []
  readonly #slots = new Map<string, number>()
  readonly #rows = new Rows()
  readonly #freeSlots: number[] = []
  /** By label and algorithm, so that an edited rule keeps the buckets of its unchanged bands. */
  readonly #bucketsByBand = new Map<string, Buckets>()

  constructor(name: string) {
    this.name = name
  }

  get size(): number {
    return this.#slots.size
  }

  /** Switches to the bands of `group`. */
  bind(group: BucketGroup): this {
    if (group === this.group) return this
    this.group = group
    const { hasOverrides, listed, ban, definitions } = group
    const isLimitedByBands = !hasOverrides && listed === undefined && ban === undefined && !takeHolds(group.bands)
    this.isPlain = isLimitedByBands && definitions === undefined
    this.bands = group.bands
    const bucketsOf = (band: Band) => this.#bucketsOf(band, definitionOf(band, definitions))
    this.#ruleBuckets = group.rule?.bands.map((band) => [bucketsOf(band), band]) ?? []
    this.buckets = group.bands.map(bucketsOf)
    return this
  }

  #bucketsOf(band: Band, definition: Band | undefined): Buckets {
    const name = nameOfBand(band, definition)
    const known = this.#bucketsByBand.get(name)
    known?.bind?.(band, definition)
    const buckets = known ?? createBuckets(band, this.#rows, definition)
    this.#bucketsByBand.set(name, buckets)
    return buckets
  }

  /** The buckets of the current bands, which keep reservations from now on. */
  reserved(): readonly ReservedBuckets[] {
    for (const [name, buckets] of this.#bucketsByBand)
      if (!(buckets instanceof ReservedBuckets)) this.#bucketsByBand.set(name, new ReservedBuckets(buckets))
    this.buckets = this.bands.map((band) => this.#bucketsOf(band, definitionOf(band, this.group?.definitions)))
    return this.buckets as readonly ReservedBuckets[]
  }

  /** The most open reservations that a bucket of the slot has. */
  openReservations(slot: number, now: number): number {
    let most = 0
    for (const [i, buckets] of this.buckets.entries())
      if (buckets instanceof ReservedBuckets) most = Math.max(most, buckets.openIn(slot, this.bands[i] as Band, now))
    return most
  }

  /** The open reservations of a slot, by band. */
  reservedIn(slot: number, now: number): readonly ReservedPermits[] {
    return this.buckets.map((buckets, i) =>
      buckets instanceof ReservedBuckets ? buckets.reservedIn(slot, this.bands[i] as Band, now) : noneReserved,
    )
  }

  slotOf(key: string): number | undefined {
    return this.#slots.get(key)
  }

  /** Assigns a slot to a key that has none. */
  add(key: string): number {
    const slot = this.#freeSlots.pop() ?? this.#slots.size
    this.#slots.set(ownText(key), slot)
    return slot
  }

  /** Converts the buckets of a slot that were written under another definition of the rule. */
  rebase(slot: number, now: number): void {
    for (let i = 0; i < this.buckets.length; i++) this.buckets[i]?.rebase?.(slot, this.bands[i] as Band, now)
  }

  delete(key: string): boolean {
    const slot = this.#slots.get(key)
    if (slot === undefined) return false
    this.#slots.delete(key)
    this.#freeSlots.push(slot)
    for (const buckets of this.#bucketsByBand.values()) buckets.clear(slot)
    return true
  }

  keys(): IterableIterator<string> {
    return this.#slots.keys()
  }

  /** Refunds permits to all bands. Has no effect on a key without buckets. */
  refund(key: string, permits: number, now: number, grantedAt?: readonly number[], hold?: HoldId): void {
    const slot = this.#slots.get(key)
    if (slot === undefined) return
    for (const [index, buckets] of this.buckets.entries())
      if (hold !== undefined && buckets.release !== undefined) buckets.release(slot, hold, now)
      else buckets.refund(slot, this.bands[index] as Band, permits, now, grantedAt?.[index] ?? now)
  }

  /** Releases a hold in all bands that take holds. Returns true if one of them had it. */
  release(key: string, hold: HoldId, now: number): boolean {
    const slot = this.#slots.get(key)
    if (slot === undefined) return false
    let wasHeld = false
    for (const buckets of this.buckets) wasHeld = buckets.release?.(slot, hold, now) || wasHeld
    return wasHeld
  }

  /** Renews a hold in all bands that take holds. Returns false if one of them does not have it. */
  renew(key: string, hold: HoldId, now: number): boolean {
    const slot = this.#slots.get(key)
    if (slot === undefined) return false
    let isHeld = true
    for (const [index, buckets] of this.buckets.entries())
      isHeld = (buckets.renew?.(slot, this.bands[index] as Band, hold, now) ?? true) && isHeld
    return isHeld
  }

  /** The tick from which the buckets of a key are equivalent to unused ones. */
  expiresAt(key: string): number {
    const slot = this.#slots.get(key) as number
    let latest = 0
    for (let i = 0; i < this.buckets.length; i++)
      latest = Math.max(latest, (this.buckets[i] as Buckets).expiresAt(slot, this.bands[i] as Band))
    for (const [buckets, band] of this.#ruleBuckets) latest = Math.max(latest, buckets.expiresAt(slot, band))
    return latest
  }

  /** True if a request with this key would be denied now. */
  isDenying(key: string, now: number, scratch: Step): boolean {
    const slot = this.#slots.get(key) as number
    const permits = this.group?.permits ?? 1
    return this.buckets.some((buckets, index) => {
      buckets.step(slot, this.bands[index] as Band, permits, now, 0, scratch)
      return !scratch.allowed
    })
  }
}

const nameOfBand = ({ label, algorithm, refill }: Band, definition: Band | undefined): string =>
  JSON.stringify([label, algorithm, refill, definition !== undefined])

/** The tables of all rules. A table exists as long as its rule has keys. */
export class RuleTables {
  readonly #byName = new Map<string, RuleTable>()
  #size = 0

  /** The number of keys in all tables. */
  get size(): number {
    return this.#size
  }

  /** The table of a plain group, unless the group is used for the first time. */
  knownPlain(group: BucketGroup): RuleTable | undefined {
    const { memo } = group
    if (memo?.owner !== this) return undefined
    const table = memo.note as RuleTable
    return table.isPlain && table.group === group ? table : undefined
  }

  of(group: BucketGroup): RuleTable {
    const { memo } = group
    if (memo?.owner === this && (memo.note as RuleTable).group === group) return memo.note as RuleTable
    return this.#find(group)
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

  /** Drops the table of a rule if there is one. Thousands of rules may be retired at once, most of them without a table. */
  retire(group: BucketGroup): void {
    const table = this.#byName.size === 0 ? undefined : this.#byName.get(nameOf(group))
    if (table !== undefined) this.drop(table)
  }

  /** Removes a table with all its keys. */
  drop(table: RuleTable): void {
    this.#size -= table.size
    table.group = undefined
    this.#byName.delete(table.name)
  }

  clear(): void {
    for (const table of this.#byName.values()) table.group = undefined
    this.#byName.clear()
    this.#size = 0
  }

  /** Every key with its table. Keys may be added and removed during the iteration. */
  *entries(): Generator<[RuleTable, string]> {
    for (const table of this.#byName.values())
      for (const key of table.keys()) {
        if (table.group === undefined) break
        yield [table, key]
      }
  }
}

const nameOf = ({ ruleSetId, ruleId, generation }: BucketGroup): string =>
  JSON.stringify([ruleSetId, ruleId, generation])
