import { type BucketGroup, type Charge, copyResult } from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import { expiredTicks, maxOpenReservations, type OnExpire } from '../../core/reservations/reservation.js'
import {
  actualPermits,
  chargedOf,
  type ReservationRequest,
  type ReservationStorage,
  type ReservedPermits,
  type ReserveOutcome,
  type SettlementRequest,
  type SettleOutcome,
  unknownCostIn,
} from '../../core/reservations/reservation-storage.js'
import type { Band } from '../../core/rule.js'
import type { MemoryBuckets } from './buckets.js'
import { ExpiringMap } from './expiring-map.js'
import { type PackedState, ReservationPacker, unpack } from './packed-reservation.js'

/** The default of the most reservations that are open, or settled and not yet expired. They take about 100 MB. */
export const defaultMaxReservations = 200_000

interface Stored extends PackedState {
  readonly expiresAt: number
  settlement: PackedSettlement | undefined
}

interface PackedSettlement extends PackedState {
  readonly isCanceled: boolean
}

/** Reservations in this process. Each call completes synchronously, so that it is atomic. */
export class MemoryReservations implements ReservationStorage {
  readonly #store: MemoryBuckets
  readonly #clock: Clock
  /** Keeps expired reservations for a while, so that a late settlement gets a clear error. */
  readonly #byId: ExpiringMap<Stored>
  readonly #packer = new ReservationPacker()

  constructor(store: MemoryBuckets, clock: Clock, max: number) {
    this.#store = store
    this.#clock = clock
    this.#byId = new ExpiringMap(max, ({ expiresAt }, now) => now >= expiresAt + expiredTicks)
  }

  async reserve(request: ReservationRequest): Promise<ReserveOutcome> {
    const now = ticks(this.#clock)
    const known = this.#byId.get(request.id, now)
    if (known !== undefined) return unpack(known)
    if (!this.#byId.makeRoom(now) || request.charges.some((charge) => this.#isFull(charge))) return 'FULL'
    const { charges, ruleSetId, reason } = request
    const { applied = charges, ...result } = copyResult(charges, this.#store.chargeSync(charges, false))
    const state = { ruleSetId, reason, charges: applied, result }
    if (!result.granted) return state
    const expiresAt = result.now + request.ttlTicks
    const charged = chargedOf(applied, result)
    for (const [i, charge] of applied.entries())
      if (charged[i] && charge.permits > 0) this.#open(charge, request.id, expiresAt, request.onExpire, result.now)
    const { terms, keys, numbers } = this.#packer.pack(state, request)
    // Lists all members, because V8 needs more memory for objects that were created by spreading.
    this.#byId.set(request.id, { terms, keys, numbers, expiresAt, settlement: undefined })
    return state
  }

  async settle({ id, amounts, currentGroup }: SettlementRequest): Promise<SettleOutcome> {
    const now = ticks(this.#clock)
    const stored = this.#byId.get(id, now)
    if (stored === undefined) return 'UNKNOWN'
    const { terms, settlement, expiresAt } = stored
    const { names, costs } = terms
    const unknownCost = unknownCostIn(amounts, names)
    if (unknownCost !== undefined) return { unknownCost, names }
    if (settlement !== undefined) return { ...unpack(settlement), isCanceled: settlement.isCanceled }
    if (expiresAt <= now) return 'EXPIRED'
    const state = unpack(stored)
    const charged = chargedOf(state.charges, state.result)
    const charges = state.charges.map((charge, i): Charge => {
      const group = (charge.group.insteadOf === undefined && currentGroup(charge.group)) || charge.group
      const actual = actualPermits(charge, costs[i] as ReservationRequest['costs'][0], amounts)
      if (charged[i]) this.#replace({ ...charge, group }, id, actual, now)
      return { ...charge, group, permits: 0 }
    })
    const result = copyResult(charges, this.#store.chargeSync(charges.map(withoutOverrides), true))
    const settled = { ...state, charges, result }
    const isCanceled = amounts === undefined
    const packed = this.#packer.pack(settled, terms)
    stored.settlement = { terms: packed.terms, keys: packed.keys, numbers: packed.numbers, isCanceled }
    return { ...settled, isCanceled }
  }

  async reservedIn(group: BucketGroup, key: string, now: number): Promise<readonly ReservedPermits[]> {
    const found = group.listed === undefined ? this.#store.findSlot(group, key) : undefined
    return found?.table.reservedIn(found.slot, now) ?? []
  }

  has(id: string): boolean {
    return this.#byId.get(id, ticks(this.#clock)) !== undefined
  }

  clear(): void {
    this.#byId.clear()
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

/** The buckets of the reservation are reported, even if the key has another override by now. */
const withoutOverrides = (charge: Charge): Charge =>
  charge.group.hasOverrides ? { ...charge, group: { ...charge.group, hasOverrides: false } } : charge
