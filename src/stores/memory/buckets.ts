import { type Buckets, newStep, type Step } from '../../core/algorithm.js'
import {
  type BucketGroup,
  type Charge,
  type ChargeResult,
  copyResult,
  isPlain,
  type Refund,
} from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import { boundedKey } from '../../core/keys/bounded-key.js'
import type { Band } from '../../core/rule.js'
import { Eviction, overflowKey } from './eviction.js'
import type { MemoryStore } from './memory-store.js'
import { MemoryOverrides } from './overrides.js'
import type { RuleTable } from './rule-table.js'
import { RuleTables } from './rule-tables.js'

const hasOverrides = ({ group }: Charge): boolean => group.hasOverrides === true

/** With keys as they are stored. Denied demands have no bucket, and are looked up by their key again. */
function bounded(demands: readonly Charge[]): readonly Charge[] {
  let copy: Charge[] | undefined
  for (let i = 0; i < demands.length; i++) {
    const demand = demands[i] as Charge
    const key = boundedKey(demand.key)
    if (key === demand.key || demand.group.listed !== undefined) continue
    copy ??= [...demands]
    copy[i] = { ...demand, key }
  }
  return copy ?? demands
}

/** A bucket with a starting balance is there before anybody has used it. */
const isBegun = ({ bands }: BucketGroup): boolean => bands.some(({ spent }) => spent !== undefined)

function newGrant(): Step {
  const step = newStep()
  step.allowed = true
  step.delay = 0
  step.retryAfter = 0
  return step
}

/** Marks an identity without a place of its own yet. */
const none = -1

/** Buckets in this process. */
export class MemoryBuckets implements MemoryStore {
  readonly #tables = new RuleTables()
  readonly #eviction: Eviction
  readonly #clock: Clock
  /** What the running decision needs, reused by the next: where each identity lives, what each band says, the result. */
  readonly #tableOf: RuleTable[] = []
  readonly #slots: number[] = []
  readonly #steps: Step[] = [newStep()]
  readonly #look = newStep()
  readonly #result = { granted: false, now: Number.NaN, bands: this.#steps }
  /** The same for what is granted at once, of which all but three numbers is known. */
  readonly #grants: Step[] = [newGrant()]
  readonly #granted = { granted: true, now: Number.NaN, bands: this.#grants }

  readonly overrides: MemoryOverrides

  constructor(maxKeys: number, clock: Clock) {
    this.#eviction = new Eviction(this.#tables, maxKeys)
    this.#clock = clock
    this.overrides = new MemoryOverrides(() => clock.now())
  }

  get size(): number {
    return this.#tables.size
  }

  async charge(demands: readonly Charge[], peek: boolean): Promise<ChargeResult> {
    return copyResult(demands, this.chargeSync(demands, peek))
  }

  chargeSync(demands: readonly Charge[], peek: boolean): ChargeResult {
    const now = ticks(this.#clock)
    const first = demands[0] as Charge
    if (demands.length === 1 && !peek && isPlain(first)) {
      const table = this.#tables.of(first.group)
      const slot = table.slotOf(boundedKey(first.key))
      if (slot !== undefined) return this.#chargeKnown(table, slot, first, now)
    }
    const applied = demands.some(hasOverrides) ? this.overrides.appliedTo(demands, now) : undefined
    return applied === undefined
      ? this.#charge(bounded(demands), peek, now)
      : { ...this.#charge(bounded(applied), peek, now), applied }
  }

  #charge(demands: readonly Charge[], peek: boolean, now: number): ChargeResult {
    let granted = true
    let strangers = 0
    let first = 0
    for (let i = 0; i < demands.length; i++) {
      const demand = demands[i] as Charge
      if (demand.group.listed !== undefined) {
        this.#slots[i] = 0
        if (demand.group.listed === 'DENY') {
          this.#deny(demand, first, now)
          if (!demand.shadow) granted = false
          first += 1
        }
        continue
      }
      const table = this.#tables.of(demand.group)
      const slot = table.slotOf(demand.key) ?? none
      this.#tableOf[i] = table
      this.#slots[i] = slot
      if (slot === none && demand.key !== overflowKey) strangers += 1
      const bands = demand.group.bands.length
      const allowed = this.#step(table, slot, bands, first, demand.permits, now, demand.maxWaitTicks)
      if (!allowed && !demand.shadow) granted = false
      first += bands
    }
    if (strangers > 0 && granted && !peek && !this.#makeRoom(strangers, demands, now))
      return this.#charge(this.#overflow(demands), peek, now)
    first = 0
    for (let i = 0; i < demands.length; i++) {
      const demand = demands[i] as Charge
      const bands = demand.group.bands.length
      if (demand.group.listed !== undefined) {
        first += bands
        continue
      }
      const charged = granted && (!demand.shadow || this.#allAllow(bands, first))
      if (charged && !peek) this.#writeOrAdd(demand, i, first)
      else this.#leave(this.#tableOf[i] as RuleTable, this.#slots[i] as number, bands, first, now, charged)
      first += bands
    }
    this.#result.granted = granted
    this.#result.now = now
    return this.#result
  }

  /** The fast path: one rule without waiting and overrides, and a key that has a slot. */
  #chargeKnown(table: RuleTable, slot: number, { permits, maxWaitTicks, shadow }: Charge, now: number): ChargeResult {
    const { bands, buckets } = table
    const grants = this.#grants
    let taken = 0
    if (buckets.length === 1) {
      const grant = grants[0] as Step
      grant.now = now
      if (buckets[0]?.take?.(slot, bands[0] as Band, permits, grant)) taken = 1
    } else {
      while (grants.length < buckets.length) grants.push(newGrant())
      for (; taken < buckets.length; taken++) {
        const grant = grants[taken] as Step
        const ofBand = buckets[taken] as Buckets
        grant.now = now
        if (!ofBand.take?.(slot, bands[taken] as Band, permits, grant)) break
      }
    }
    if (taken === buckets.length) {
      this.#granted.now = now
      return this.#granted
    }
    while (taken-- > 0) buckets[taken]?.untake?.(slot, bands[taken] as Band, permits, grants[taken] as Step)
    const steps = this.#steps
    while (steps.length < buckets.length) steps.push(newStep())
    let allowed = true
    for (let i = 0; i < buckets.length; i++) {
      const step = steps[i] as Step
      const ofBand = buckets[i] as Buckets
      ofBand.step(slot, bands[i] as Band, permits, now, maxWaitTicks, step)
      if (!step.allowed) allowed = false
    }
    if (!allowed) this.#leave(table, slot, buckets.length, 0, now, false)
    else
      for (let i = 0; i < buckets.length; i++) {
        const { next } = steps[i] as Step
        const ofBand = buckets[i] as Buckets
        ofBand.write(slot, next)
      }
    const result = this.#result
    result.granted = allowed || shadow
    result.now = now
    return result
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    const now = ticks(this.#clock)
    for (const { group, key, permits, grantedAt } of refunds) {
      // What was granted at a certain time comes back to where it was taken from.
      const counted = grantedAt === undefined ? this.overrides.groupOf(group, key, now) : group
      if (counted.listed !== undefined) continue
      const stored = boundedKey(key)
      if (isBegun(counted) && !this.#begin(counted, stored, now)) continue
      this.#tables.of(counted).refund(stored, permits, now, grantedAt)
    }
  }

  /** Writes down what an identity begins with; false if there is no room for it. */
  #begin(group: BucketGroup, key: string, now: number): boolean {
    if (this.#tables.of(group).slotOf(key) !== undefined) return true
    if (!this.#eviction.makeRoom(1, now, () => false)) return false
    this.#tables.add(this.#tables.of(group), key)
    return true
  }

  async reset(group: BucketGroup, key: string): Promise<void> {
    const stored = boundedKey(key)
    this.#tables.delete(this.#tables.of(group), stored)
    const instead = this.overrides.groupOf(group, key, ticks(this.#clock))
    if (instead !== group && instead.listed === undefined) this.#tables.delete(this.#tables.of(instead), stored)
  }

  retire(group: BucketGroup): void {
    this.#tables.retire(group)
  }

  async close(): Promise<void> {
    this.#tables.clear()
    this.#eviction.clear()
  }

  /** Says no in the place of a band. */
  #deny({ group, key }: Charge, index: number, now: number): void {
    while (this.#steps.length <= index) this.#steps.push(newStep())
    const step = this.#steps[index] as Step
    const until = this.overrides.deniedUntil(group, key, now)
    step.allowed = false
    step.delay = 0
    step.retryAfter = until - now
    step.remaining = 0
    step.resetAt = until === Number.POSITIVE_INFINITY ? now : until
  }

  /** Asks every band of a demand; true if all allow. */
  #step(
    table: RuleTable,
    slot: number,
    bands: number,
    first: number,
    permits: number,
    now: number,
    maxWaitTicks: number,
  ): boolean {
    let allowed = true
    for (let i = 0; i < bands; i++) {
      if (first + i === this.#steps.length) this.#steps.push(newStep())
      const step = this.#steps[first + i] as Step
      table.step(i, slot, permits, now, maxWaitTicks, step)
      if (!step.allowed) allowed = false
    }
    return allowed
  }

  #allAllow(bands: number, first: number): boolean {
    for (let i = 0; i < bands; i++) if (!this.#steps[first + i]?.allowed) return false
    return true
  }

  #write(table: RuleTable, slot: number, bands: number, first: number): void {
    for (let i = 0; i < bands; i++) table.write(i, slot, this.#steps[first + i] as Step)
  }

  #writeOrAdd(demand: Charge, index: number, first: number): void {
    let table = this.#tableOf[index] as RuleTable
    let slot = this.#slots[index] as number
    if (slot === none) {
      // Making room may have let go of a table that had become empty.
      table = this.#tables.of(demand.group)
      slot = this.#tables.add(table, demand.key)
    }
    this.#write(table, slot, demand.group.bands.length, first)
  }

  /**
   * Charges nothing. A band that would have allowed is reported as it stands, unless its answer is to be kept for a peek;
   * and if time has stepped back, the bucket moves along.
   */
  #leave(table: RuleTable, slot: number, bands: number, first: number, now: number, keep: boolean): void {
    for (let i = 0; i < bands; i++) {
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
  #makeRoom(strangers: number, demands: readonly Charge[], now: number): boolean {
    return this.#eviction.makeRoom(strangers, now, (table, key) =>
      demands.some(
        (demand) => demand.key === key && demand.group.listed === undefined && this.#tables.of(demand.group) === table,
      ),
    )
  }

  /** Every bucket is refusing somebody, so none may go: identities without a place share one per rule. */
  #overflow(demands: readonly Charge[]): Charge[] {
    return demands.map((demand, i) => (this.#slots[i] === none ? { ...demand, key: overflowKey } : demand))
  }
}
