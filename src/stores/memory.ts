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

class Memory implements MemoryStore {
  readonly #tables: RuleTables
  readonly #clock: Clock

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
    const now = ticks(this.#clock)
    const bands: Step<unknown>[] = []
    let granted = true
    for (const demand of demands) if (!this.#stepAll(demand, bands, now) && !demand.shadow) granted = false
    if (granted && !peek && !this.#reserve(demands, now)) return this.chargeSync(this.#overflow(demands), peek)
    let first = 0
    for (const demand of demands) {
      if (granted && everyAllowed(bands, first, demand)) {
        if (peek) this.#look(demand, now)
        else this.#write(demand, bands, first)
      } else {
        const untouched = this.#look(demand, now)
        for (let i = 0; i < untouched.length; i++)
          if (bands[first + i]?.allowed) bands[first + i] = untouched[i] as Step<unknown>
      }
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

  #stepAll(demand: Demand, bands: Step<unknown>[], now: number): boolean {
    const table = this.#tables.of(demand.group)
    const slot = table.slotOf(demand.key)
    let allowed = true
    for (let i = 0; i < demand.group.bands.length; i++) {
      const step = table.step(slot, i, demand.permits, now, demand.patience)
      bands.push(step)
      if (!step.allowed) allowed = false
    }
    return allowed
  }

  #write(demand: Demand, bands: readonly Step<unknown>[], first: number): void {
    const table = this.#tables.of(demand.group)
    const slot = table.slotOf(demand.key) ?? this.#tables.add(table, demand.key)
    for (let i = 0; i < demand.group.bands.length; i++) table.write(slot, i, bands[first + i]?.change)
  }

  /** The bands as they stand. A change without a charge means that time has stepped back: the bucket moves along. */
  #look(demand: Demand, now: number): Step<unknown>[] {
    const table = this.#tables.of(demand.group)
    const slot = table.slotOf(demand.key)
    return demand.group.bands.map((_, i) => {
      const step = table.step(slot, i, 0, now, 0)
      if (slot !== undefined && step.change !== undefined) table.write(slot, i, step.change)
      return step
    })
  }

  /** Makes sure that every identity of the decision has, or can get, a place. */
  #reserve(demands: readonly Demand[], now: number): boolean {
    let missing = 0
    for (const demand of demands) if (!this.#isKnown(demand)) missing += 1
    if (missing === 0) return true
    return this.#tables.makeRoom(missing, now, (table, key) =>
      demands.some((demand) => demand.key === key && this.#tables.of(demand.group) === table),
    )
  }

  #isKnown({ group, key }: Demand): boolean {
    return key === overflowKey || this.#tables.of(group).slotOf(key) !== undefined
  }

  /** Every bucket is refusing somebody, so none may go: identities without a place share one per rule. */
  #overflow(demands: readonly Demand[]): Demand[] {
    return demands.map((demand) => (this.#isKnown(demand) ? demand : { ...demand, key: overflowKey }))
  }
}

function everyAllowed(bands: readonly Step<unknown>[], first: number, demand: Demand): boolean {
  for (let i = 0; i < demand.group.bands.length; i++) if (!bands[first + i]?.allowed) return false
  return true
}
