import { type BucketGroup, type Charge, copyResult } from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import { expiredTicks, maxOpenReservations, type OnExpire } from '../../core/reservations/reservation.js'
import {
  actualPermits,
  chargedOf,
  type ReservationRequest,
  type ReservationStorage,
  type ReservedPermits,
  type ReservedState,
  type ReserveOutcome,
  type Settlement,
  type SettlementRequest,
  type SettleOutcome,
  unknownCostIn,
} from '../../core/reservations/reservation-storage.js'
import type { Band } from '../../core/rule.js'
import type { MemoryBuckets } from './buckets.js'

/** The maximum number of reservations that are open, or settled and not yet expired. */
export const maxReservations = 1_000_000
/** Reservations that each call inspects, to remove the expired ones; and the same if there is no room for another one. */
const inspected = 4
const inspectedIfFull = 1_000

interface Stored {
  readonly request: ReservationRequest
  readonly state: ReservedState
  readonly expiresAt: number
  settlement: Settlement | undefined
}

/** Reservations in this process. Each call completes synchronously, so that it is atomic. */
export class MemoryReservations implements ReservationStorage {
  readonly #store: MemoryBuckets
  readonly #clock: Clock
  readonly #byId = new Map<string, Stored>()
  readonly #max: number
  /** The ids that are inspected next. */
  #inspection = this.#byId.keys()

  constructor(store: MemoryBuckets, clock: Clock, max = maxReservations) {
    this.#store = store
    this.#clock = clock
    this.#max = max
  }

  async reserve(request: ReservationRequest): Promise<ReserveOutcome> {
    const now = ticks(this.#clock)
    const known = this.#find(request.id, now)
    if (known !== undefined) return known.state
    this.#removeExpired(now)
    if (this.#byId.size >= this.#max || request.charges.some((charge) => this.#isFull(charge))) return 'FULL'
    const { charges, ruleSetId, reason } = request
    const { applied = charges, ...result } = copyResult(charges, this.#store.chargeSync(charges, false))
    const state = { ruleSetId, reason, charges: applied, result }
    if (!result.granted) return state
    const expiresAt = result.now + request.ttlTicks
    const charged = chargedOf(applied, result)
    for (const [i, charge] of applied.entries())
      if (charged[i] && charge.permits > 0) this.#open(charge, request.id, expiresAt, request.onExpire, result.now)
    this.#byId.set(request.id, { request, state, expiresAt, settlement: undefined })
    return state
  }

  async settle({ id, amounts, currentGroup }: SettlementRequest): Promise<SettleOutcome> {
    const now = ticks(this.#clock)
    const stored = this.#find(id, now)
    if (stored === undefined) return 'UNKNOWN'
    const { request, state, settlement, expiresAt } = stored
    const { names, costs } = request
    const unknownCost = unknownCostIn(amounts, names)
    if (unknownCost !== undefined) return { unknownCost, names }
    if (settlement !== undefined) return settlement
    if (expiresAt <= now) return 'EXPIRED'
    const charged = chargedOf(state.charges, state.result)
    const charges = state.charges.map((charge, i): Charge => {
      const group = (charge.group.insteadOf === undefined && currentGroup(charge.group)) || charge.group
      const actual = actualPermits(charge, costs[i] as ReservationRequest['costs'][0], amounts)
      if (charged[i]) this.#replace({ ...charge, group }, id, actual, now)
      // The buckets of the reservation are reported, even if the key has another override by now.
      return { ...charge, group: group.hasOverrides ? { ...group, hasOverrides: false } : group, permits: 0 }
    })
    const result = copyResult(charges, this.#store.chargeSync(charges, true))
    stored.settlement = { ...state, charges, result, isCanceled: amounts === undefined }
    return stored.settlement
  }

  async reservedIn(group: BucketGroup, key: string, now: number): Promise<readonly ReservedPermits[]> {
    const found = group.listed === undefined ? this.#store.findSlot(group, key) : undefined
    return found?.table.reservedIn(found.slot, now) ?? []
  }

  has(id: string): boolean {
    return this.#find(id, ticks(this.#clock)) !== undefined
  }

  clear(): void {
    this.#byId.clear()
  }

  /** An expired reservation is removed later, so that a late settlement gets a clear error. */
  #find(id: string, now: number): Stored | undefined {
    const stored = this.#byId.get(id)
    if (stored === undefined || now < stored.expiresAt + expiredTicks) return stored
    this.#byId.delete(id)
    return undefined
  }

  /** Inspects a few reservations, so that no call takes long. */
  #removeExpired(now: number): void {
    for (let count = this.#byId.size < this.#max ? inspected : inspectedIfFull; count > 0; count--) {
      const { value: id, done } = this.#inspection.next()
      if (done) {
        this.#inspection = this.#byId.keys()
        return
      }
      this.#find(id, now)
    }
  }

  #isFull(charge: Charge): boolean {
    const { group, now } = this.#store.bucketsOf(charge)
    const found = group.listed === undefined ? this.#store.findSlot(group, charge.key) : undefined
    return found !== undefined && found.table.openReservations(found.slot, now) >= maxOpenReservations
  }

  #open({ group, key, permits }: Charge, id: string, expiresAt: number, onExpire: OnExpire, now: number): void {
    const { table, slot } = this.#store.openSlot(group, key, now)
    for (const [i, buckets] of table.reserved().entries())
      buckets.open(slot, table.bands[i] as Band, { id, permits, expiresAt, onExpire }, now)
  }

  /** Replaces the permits of a charge. Without buckets, which are then full, nothing is returned. */
  #replace({ group, key, permits }: Charge, id: string, actual: number, now: number): void {
    if (actual <= permits && this.#store.findSlot(group, key) === undefined) return
    const { table, slot } = this.#store.openSlot(group, key, now)
    for (const [i, buckets] of table.reserved().entries())
      buckets.settle(slot, table.bands[i] as Band, { id, permits }, actual, now)
  }
}
