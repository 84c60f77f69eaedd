import type { BucketGroup, ChargeResult } from '../../../../core/bucket-store.js'
import { FluxGateError } from '../../../../core/errors.js'
import {
  type ReservationRequest,
  type ReservationStorage,
  type ReservedPermits,
  type ReservedState,
  type ReserveOutcome,
  type SettlementRequest,
  type SettleOutcome,
  unknownCostIn,
} from '../../../../core/reservations/reservation-storage.js'
import { joinResults, partsOf } from '../../across-slots.js'
import type { KeptReservation } from '../record.js'
import { type RedisReservationsOptions, readReserved } from '../redis-reservations.js'
import { Coordinator, type CoordinatorRecord } from './coordinator.js'
import { type Attempt, SlotReservations } from './slot-reservations.js'

export interface ClusterReservationsOptions extends RedisReservationsOptions {
  /** The time for scripts in ticks; negative for that of the server. */
  readonly now: () => number
  readonly slotOf: (key: string) => number
}

interface Made extends Attempt {
  /** The reservation in the slot of each part. */
  readonly reservations: readonly KeptReservation[]
}

/** Reservations of this process that need not be read again. */
const maxKept = 10_000
/** An attempt is repeated only if another process makes the same reservation at the same time and is rejected. */
const maxAttempts = 5

/**
 * Reservations in a Redis Cluster. A coordinator record in the slot of the id decides whether a reservation was made and how it
 * ended. Each slot with buckets has a record too, so every call can be repeated there. The next call for an id completes one
 * that was interrupted, in any process.
 */
export class ClusterReservations implements ReservationStorage {
  readonly #options: ClusterReservationsOptions
  readonly #slotOf: (key: string) => number
  readonly #coordinator: Coordinator
  readonly #slots: SlotReservations
  readonly #kept = new Map<string, Made>()

  constructor(options: ClusterReservationsOptions) {
    this.#options = options
    this.#slotOf = options.slotOf
    this.#coordinator = new Coordinator(options)
    this.#slots = new SlotReservations(options)
  }

  async reserve(request: ReservationRequest): Promise<ReserveOutcome> {
    if (!request.isNamed) return this.#reserveUnnamed(request)
    for (let i = 0; i < maxAttempts; i++) {
      const attempt = crypto.randomUUID()
      const record = await this.#coordinator.begin(request, attempt, 'PENDING')
      const outcome = await this.#continue(record.attempt === attempt ? { ...record, request } : record)
      if (outcome !== undefined) return outcome
    }
    throw interrupted()
  }

  async settle({ id, amounts, currentGroup }: SettlementRequest): Promise<SettleOutcome> {
    const made = this.#kept.get(id) ?? (await this.#find(id))
    if (made === undefined) return 'UNKNOWN'
    const { names } = made.request
    const unknownCost = unknownCostIn(amounts, names)
    if (unknownCost !== undefined) return { unknownCost, names }
    const record = await this.#coordinator.end(id, amounts)
    const isEnded = record?.attempt === made.attempt && record.state === 'ENDED'
    // If a slot fails, the reservation stays known, so that the call can be repeated.
    const ended = isEnded ? await this.#slots.end(made, made.reservations, record.amounts, currentGroup) : undefined
    this.#kept.delete(id)
    if (record?.attempt === made.attempt && record.state === 'MADE') return 'EXPIRED'
    if (ended === undefined || record === undefined) return 'UNKNOWN'
    return { ...stateOf(made, ended), isCanceled: record.amounts === undefined }
  }

  reservedIn(group: BucketGroup, key: string, now: number): Promise<readonly ReservedPermits[]> {
    return readReserved(this.#options, group, key, now)
  }

  /** No other process knows the id, so the reservation is recorded only after it was made. */
  async #reserveUnnamed(request: ReservationRequest): Promise<ReserveOutcome> {
    const attempt: Attempt = { ...this.#partsOf(request), attempt: crypto.randomUUID(), madeAt: 0 }
    try {
      const reservations = await this.#slots.reserve(attempt)
      if (!isMade(reservations)) return this.#rejected(attempt, reservations)
      const { madeAt } = await this.#coordinator.begin(request, attempt.attempt, 'MADE')
      return this.#keep({ ...attempt, madeAt, reservations })
    } catch (error) {
      this.#slots.abort(attempt).catch(() => {})
      throw error
    }
  }

  /** Returns the outcome of a reservation that has a record, or undefined if it must be tried again. */
  async #continue(record: CoordinatorRecord): Promise<ReserveOutcome | undefined> {
    const { attempt, madeAt, state, request } = record
    const { id } = request
    const made: Attempt = { ...this.#partsOf(request), attempt, madeAt }
    if (state === 'MADE' || state === 'ENDED') {
      const reservations = await this.#slots.read(made)
      return reservations && stateOf(made, reservations)
    }
    if (state === 'ABORTING') {
      await this.#slots.abort(made)
      await this.#coordinator.forget(id, attempt)
      return undefined
    }
    const reservations = await this.#slots.reserve(made)
    const next = isMade(reservations) ? 'MADE' : 'ABORTING'
    const moved = await this.#coordinator.move(id, attempt, 'PENDING', next)
    if (next === 'MADE') {
      if (moved?.attempt === attempt && moved.state !== 'ABORTING') return this.#keep({ ...made, reservations } as Made)
      // In between, another process was rejected and has aborted the attempt.
      await this.#slots.abort(made)
      return undefined
    }
    // In between, another process was allowed.
    if (moved?.attempt === attempt && moved.state !== 'ABORTING') return undefined
    const outcome = await this.#rejected(made, reservations)
    await this.#coordinator.forget(id, attempt)
    return outcome
  }

  async #rejected(attempt: Attempt, outcomes: readonly (KeptReservation | 'FULL')[]): Promise<ReserveOutcome> {
    if (outcomes.includes('FULL')) {
      await this.#slots.abort(attempt)
      return 'FULL'
    }
    return stateOf(attempt, await this.#slots.rejected(attempt, outcomes as readonly KeptReservation[]))
  }

  /** Reads a reservation that was made, in any process. */
  async #find(id: string): Promise<Made | undefined> {
    let record = await this.#coordinator.read(id)
    if (record?.state === 'PENDING') {
      await this.#continue(record)
      record = await this.#coordinator.read(id)
    }
    if (record === undefined || record.state === 'PENDING' || record.state === 'ABORTING') return undefined
    const { attempt, madeAt, request } = record
    const made: Attempt = { ...this.#partsOf(request), attempt, madeAt }
    const reservations = await this.#slots.read(made)
    return reservations && { ...made, reservations }
  }

  #partsOf(request: ReservationRequest): Pick<Attempt, 'request' | 'parts'> {
    return { request, parts: partsOf(request.charges, this.#slotOf) }
  }

  #keep(made: Made): ReservedState {
    const { id } = made.request
    this.#kept.delete(id)
    this.#kept.set(id, made)
    if (this.#kept.size > maxKept) {
      const [oldest = ''] = this.#kept.keys()
      this.#kept.delete(oldest)
    }
    return stateOf(made, made.reservations)
  }
}

const isMade = (outcomes: readonly (KeptReservation | 'FULL')[]): outcomes is readonly KeptReservation[] =>
  outcomes.every((outcome) => outcome !== 'FULL' && outcome.result.granted)

/** Joins the states of all parts in the order of the charges. */
function stateOf(
  { request: { ruleSetId, reason, charges }, parts, madeAt }: Attempt,
  states: readonly Pick<ReservedState, 'charges' | 'result'>[],
): ReservedState {
  // Without charges, no slot has a time.
  if (parts.length === 0) return { ruleSetId, reason, charges, result: { granted: true, now: madeAt, bands: [] } }
  const results = states.map(({ charges: applied, result }): ChargeResult => ({ ...result, applied }))
  const { applied = charges, ...result } = joinResults(charges, parts, results)
  return { ruleSetId, reason, charges: applied, result }
}

const interrupted = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_FAILED',
    'The bucket store failed to reserve permits: other processes make and abort the same reservation. Try again.',
  )
