import type { BucketGroup, Charge, ChargeResult } from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import { expiredTicks } from '../../core/reservations/reservation.js'
import {
  actualPermits,
  chargedOf,
  type ReservationRequest,
  type ReservationStorage,
  type ReservedState,
  type ReserveOutcome,
  type Settlement,
  type SettlementRequest,
  type SettleOutcome,
} from '../../core/reservations/reservation-storage.js'
import type { Band } from '../../core/rule.js'
import type { ReservableModel } from './reservation-models.js'

interface Parts {
  readonly clock: Clock
  readonly charge: (charges: readonly Charge[], peek: boolean) => Promise<ChargeResult>
  /** The model of a bucket, at the current time. */
  readonly modelOf: (group: BucketGroup, band: Band, key: string) => ReservableModel
  readonly hasModel: (group: BucketGroup, band: Band, key: string) => boolean
}

interface Stored {
  readonly request: ReservationRequest
  readonly state: ReservedState
  readonly expiresAt: number
  settlement?: Settlement
}

/** The reservations of the reference models, in unbounded memory. */
export class ReferenceReservations implements ReservationStorage {
  readonly #parts: Parts
  readonly #byId = new Map<string, Stored>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async reserve(request: ReservationRequest): Promise<ReserveOutcome> {
    const { id, charges, ruleSetId, reason, ttlTicks, onExpire } = request
    const known = this.#find(id)
    if (known !== undefined) return known.state
    const result = await this.#parts.charge(charges, false)
    const state: ReservedState = { ruleSetId, reason, charges, result }
    if (!result.granted) return state
    const expiresAt = result.now + ttlTicks
    const charged = chargedOf(charges, result)
    for (const [i, { group, key, permits }] of charges.entries())
      for (const band of charged[i] && permits > 0 ? group.bands : []) {
        const refundAt = onExpire === 'REFUND' ? BigInt(expiresAt) : undefined
        this.#parts.modelOf(group, band, key).open(id, BigInt(permits), BigInt(result.now), refundAt)
      }
    this.#byId.set(id, { request, state, expiresAt })
    return state
  }

  async settle({ id, amounts }: SettlementRequest): Promise<SettleOutcome> {
    const stored = this.#find(id)
    if (stored === undefined) return 'UNKNOWN'
    if (stored.settlement !== undefined) return stored.settlement
    const now = ticks(this.#parts.clock)
    if (stored.expiresAt <= now) return 'EXPIRED'
    const { request, state } = stored
    const charged = chargedOf(state.charges, state.result)
    for (const [i, charge] of state.charges.entries()) {
      const actual = actualPermits(charge, request.costs[i] as ReservationRequest['costs'][0], amounts)
      for (const band of charged[i] ? charge.group.bands : []) this.#replace(charge, band, id, actual, BigInt(now))
    }
    const charges = state.charges.map((charge) => ({ ...charge, permits: 0 }))
    const result = await this.#parts.charge(charges, true)
    stored.settlement = { ...state, charges, result, isCanceled: amounts === undefined }
    return stored.settlement
  }

  #find(id: string): Stored | undefined {
    const stored = this.#byId.get(id)
    return stored !== undefined && ticks(this.#parts.clock) < stored.expiresAt + expiredTicks ? stored : undefined
  }

  #replace({ group, key, permits }: Charge, band: Band, id: string, actual: number, now: bigint): void {
    const { modelOf, hasModel } = this.#parts
    const excess = actual - permits
    if (excess <= 0 && !hasModel(group, band, key)) return
    const model = modelOf(group, band, key)
    model.giveBack(id, band, BigInt(Math.max(0, -excess)), now)
    if (excess > 0) model.force(band, BigInt(excess), now)
  }
}
