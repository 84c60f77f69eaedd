import { newStep, type Step } from '../core/algorithm.js'
import {
  type BucketGroup,
  type BucketStore,
  type ChargeResult,
  copyResult,
  type Demand,
  type Refund,
} from '../core/bucket-store.js'
import { type Clock, systemClock, ticks } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import type { RuleTable } from './rule-table.js'
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
  /** What the running decision needs, reused by the next: where each identity lives, what each band says, the result. */
  readonly #tableOf: RuleTable[] = []
  readonly #slots: number[] = []
  readonly #steps: Step[] = [newStep()]
  readonly #look = newStep()
  readonly #result = { granted: false, now: Number.NaN, bands: this.#steps }

  constructor(maxKeys: number, clock: Clock) {
    this.#tables = new RuleTables(maxKeys)
    this.#clock = clock
  }

  get size(): number {
    return this.#tables.size
  }

  async charge(demands: readonly Demand[], peek: boolean): Promise<ChargeResult> {
    return copyResult(demands, this.chargeSync(demands, peek))
  }

  chargeSync(demands: readonly Demand[], peek: boolean): ChargeResult {
    const now = ticks(this.#clock)
    let granted = true
    let strangers = 0
    let first = 0
    for (let i = 0; i < demands.length; i++) {
      const demand = demands[i] as Demand
      const table = this.#tables.of(demand.group)
      const slot = table.slotOf(demand.key) ?? none
      this.#tableOf[i] = table
      this.#slots[i] = slot
      if (slot === none && demand.key !== overflowKey) strangers += 1
      if (!this.#step(table, slot, demand, first, now) && !demand.shadow) granted = false
      first += demand.group.bands.length
    }
    if (strangers > 0 && granted && !peek && !this.#makeRoom(strangers, demands, now))
      return this.chargeSync(this.#overflow(demands), peek)
    first = 0
    for (let i = 0; i < demands.length; i++) {
      const demand = demands[i] as Demand
      const charged = granted && (!demand.shadow || this.#allAllow(first, demand))
      if (charged && !peek) this.#write(demand, i, first)
      else this.#leave(demand, i, first, now, charged)
      first += demand.group.bands.length
    }
    this.#result.granted = granted
    this.#result.now = now
    return this.#result
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const now = ticks(this.#clock)
    for (const { group, key, permits, grantedAt } of refunds)
      this.#tables.of(group).refund(key, permits, now, grantedAt)
  }

  async reset(group: BucketGroup, key: string): Promise<void> {
    this.#tables.delete(this.#tables.of(group), key)
  }

  retire(group: BucketGroup): void {
    this.#tables.drop(this.#tables.of(group))
  }

  async close(): Promise<void> {
    this.#tables.clear()
  }

  /** Asks every band of a demand; true if all allow. */
  #step(table: RuleTable, slot: number, demand: Demand, first: number, now: number): boolean {
    let allowed = true
    for (let i = 0; i < demand.group.bands.length; i++) {
      if (first + i === this.#steps.length) this.#steps.push(newStep())
      const step = this.#steps[first + i] as Step
      table.step(i, slot, demand.permits, now, demand.patience, step)
      if (!step.allowed) allowed = false
    }
    return allowed
  }

  #allAllow(first: number, demand: Demand): boolean {
    for (let i = 0; i < demand.group.bands.length; i++) if (!this.#steps[first + i]?.allowed) return false
    return true
  }

  #write(demand: Demand, index: number, first: number): void {
    let table = this.#tableOf[index] as RuleTable
    let slot = this.#slots[index] as number
    if (slot === none) {
      // Making room may have let go of a table that had become empty.
      table = this.#tables.of(demand.group)
      slot = this.#tables.add(table, demand.key)
    }
    for (let i = 0; i < demand.group.bands.length; i++) table.write(i, slot, this.#steps[first + i] as Step)
  }

  /**
   * Charges nothing. A band that would have allowed is reported as it stands, unless its answer is to be kept for a peek;
   * and if time has stepped back, the bucket moves along.
   */
  #leave(demand: Demand, index: number, first: number, now: number, keep: boolean): void {
    const table = this.#tableOf[index] as RuleTable
    const slot = this.#slots[index] as number
    for (let i = 0; i < demand.group.bands.length; i++) {
      const step = this.#steps[first + i] as Step
      if (!step.allowed && !step.changes) continue
      table.step(i, slot, 0, now, 0, this.#look)
      if (this.#look.changes) table.write(i, slot, this.#look)
      if (!step.allowed || keep) continue
      step.delay = 0
      step.remaining = this.#look.remaining
      step.resetAt = this.#look.resetAt
    }
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
