import type { Step } from '../core/algorithm.js'
import type { BucketGroup, BucketStore, ChargeResult, Demand, Refund } from '../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import { overflowKey, RuleTables } from './rule-tables.js'

export interface MemoryStoreOptions {
  /** How many identities to remember at most, over all rules; default 1 000 000. */
  readonly maxKeys?: number
  readonly clock?: Clock
}

export interface MemoryStore extends BucketStore {
  chargeSync(demands: readonly Demand[], peek: boolean): ChargeResult
  /** How many identities are remembered now. */
  readonly size: number
}

/** A JavaScript Map holds no more than this. */
const mostKeys = 2 ** 24
/** Buckets in this process: the embedded default, and what limits alone when a shared store is gone. */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const { maxKeys = 1_000_000, clock = systemClock } = options
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > mostKeys)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `memoryStore: maxKeys must be a whole number from 1 to ${mostKeys}, found ${String(maxKeys)}.`,
    )
  return new Memory(maxKeys, clock)
}

/** Marks an identity without a place of its own yet. */
const none = -1

class Memory implements MemoryStore {
  readonly #tables: RuleTables
  readonly #clock: Clock
  /** Where the identity of each demand of the running decision lives; reused, since decisions do not overlap. */
  readonly #slots: number[] = []

  constructor(maxKeys: number, clock: Clock) {
    this.#tables = new RuleTables(maxKeys)
    this.#clock = clock
  }

  get size(): number {
    return this.#tables.size
  }

  async charge(demands: readonly Demand[], peek: boolean): Promise<ChargeResult> {
    return this.chargeSync(demands, peek)
  }

  chargeSync(demands: readonly Demand[], peek: boolean): ChargeResult {
    const first = demands[0] as Demand
    const isSingle = demands.length === 1 && first.group.bands.length === 1 && !peek
    return isSingle ? this.#chargeOne(first, demands) : this.#chargeAll(demands, peek)
  }

  /** What `#chargeAll` does, for the commonest decision: one band, asked for one identity. */
  #chargeOne(demand: Demand, demands: readonly Demand[]): ChargeResult {
    const now = ticks(this.#clock)
    const table = this.#tables.of(demand.group)
    const slot = table.slotOf(demand.key) ?? none
    if (slot === none) return this.#chargeAll(demands, false)
    const step = table.stepBand(0, slot, demand.permits, now, demand.patience)
    if (step.change !== undefined) table.write(slot, 0, step.change)
    return { granted: step.allowed || demand.shadow, now, bands: [step] }
  }

  #chargeAll(demands: readonly Demand[], peek: boolean): ChargeResult {
    const now = ticks(this.#clock)
    const bands: Step<unknown>[] = new Array(bandCount(demands))
    let granted = true
    let strangers = 0
    let next = 0
    for (let i = 0; i < demands.length; i++) {
      const demand = demands[i] as Demand
      const table = this.#tables.of(demand.group)
      const slot = table.slotOf(demand.key) ?? none
      this.#slots[i] = slot
      if (slot === none && demand.key !== overflowKey) strangers += 1
      if (!table.step(slot, demand, now, bands, next) && !demand.shadow) granted = false
      next += demand.group.bands.length
    }
    if (granted && !peek && strangers > 0 && !this.#makeRoom(strangers, demands, now))
      return this.#chargeAll(this.#overflow(demands), peek)
    for (let i = 0, first = 0; i < demands.length; i++) {
      const demand = demands[i] as Demand
      const charged = granted && everyAllowed(bands, first, demand)
      if (charged && !peek) this.#write(demand, this.#slots[i] as number, bands, first)
      else this.#tables.of(demand.group).look(this.#slots[i] as number, now, bands, first, charged)
      first += demand.group.bands.length
    }
    return { granted, now, bands }
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const now = ticks(this.#clock)
    for (const { group, key, permits, grantedAt } of refunds)
      this.#tables.of(group).refund(key, permits, now, grantedAt)
  }

  async reset(group: BucketGroup, key: string): Promise<void> {
    this.#tables.delete(this.#tables.of(group), key)
  }

  async close(): Promise<void> {
    this.#tables.clear()
  }

  #write(demand: Demand, known: number, bands: readonly Step<unknown>[], first: number): void {
    const table = this.#tables.of(demand.group)
    const slot = known === none ? this.#tables.add(table, demand.key) : known
    for (let i = 0; i < demand.group.bands.length; i++) table.write(slot, i, bands[first + i]?.change)
  }

  /** Makes room for new identities, at the expense of none that this decision is about. */
  #makeRoom(strangers: number, demands: readonly Demand[], now: number): boolean {
    return this.#tables.makeRoom(strangers, now, (table, key) =>
      demands.some((demand) => demand.key === key && this.#tables.of(demand.group) === table),
    )
  }

  /** Every bucket is refusing somebody, so none may go: identities without a place share one per rule. */
  #overflow(demands: readonly Demand[]): Demand[] {
    return demands.map((demand, i) => (this.#slots[i] === none ? { ...demand, key: overflowKey } : demand))
  }
}

function bandCount(demands: readonly Demand[]): number {
  let count = 0
  for (let i = 0; i < demands.length; i++) count += (demands[i] as Demand).group.bands.length
  return count
}

function everyAllowed(bands: readonly Step<unknown>[], first: number, demand: Demand): boolean {
  for (let i = 0; i < demand.group.bands.length; i++) if (!bands[first + i]?.allowed) return false
  return true
}
