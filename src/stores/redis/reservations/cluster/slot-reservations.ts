/** The parts of a reservation in the slots of its buckets. Each call may be repeated. */
import type { BucketStore } from '../../../../core/bucket-store.js'
import type {
  ReservationRequest,
  Settlement,
  SettlementRequest,
} from '../../../../core/reservations/reservation-storage.js'
import type { Costs } from '../../../../core/rule.js'
import { wrapRedisError } from '../../../../redis/client/errors.js'
import { bytesReply } from '../../../../redis/client/replies.js'
import { type Part, undo } from '../../across-slots.js'
import { bucketPrefix } from '../../bucket-keys.js'
import type { Ending, ReservationPlace } from '../../operation.js'
import { describe } from '../description.js'
import { endedResults, type KeptReservation, readRecord, resultOf } from '../record.js'
import {
  endedItems,
  madeOf,
  placeOf,
  type RedisReservationsOptions,
  settledCharges,
  settlementOf,
} from '../redis-reservations.js'

/** One attempt to make a reservation, and its part in each slot. */
export interface Attempt {
  readonly attempt: string
  readonly madeAt: number
  readonly request: ReservationRequest
  readonly parts: readonly Part[]
}

export class SlotReservations {
  readonly #options: RedisReservationsOptions
  readonly #store: Pick<BucketStore, 'charge'>

  constructor(options: RedisReservationsOptions) {
    this.#options = options
    this.#store = { charge: (items) => options.ask({ type: 'PEEK', items }) }
  }

  /** Charges each slot. Waits for all of them, also if one fails. */
  async reserve(attempt: Attempt): Promise<(KeptReservation | 'FULL')[]> {
    const replies = await Promise.allSettled(attempt.parts.map((part) => this.#reservePart(attempt, part)))
    return replies.map((reply) => {
      if (reply.status === 'rejected') throw reply.reason
      return reply.value
    })
  }

  /** Returns what was charged in any slot, and removes the records there. */
  async abort(attempt: Attempt): Promise<void> {
    await Promise.all(
      attempt.parts.map(async (part) => {
        const [made] = (await this.read({ ...attempt, parts: [part] })) ?? []
        if (made !== undefined) await this.#abortPart(attempt, part, made)
      }),
    )
  }

  /** Aborts an attempt that a slot has rejected. Returns the state of all buckets after that. */
  rejected(attempt: Attempt, reservations: readonly KeptReservation[]): Promise<KeptReservation[]> {
    return Promise.all(
      reservations.map(async (made, i) => {
        if (!made.result.granted) return made
        const giveBack = () => this.#abortPart(attempt, attempt.parts[i] as Part, made)
        return { ...made, result: await undo(this.#store, made.charges, made.result, giveBack) }
      }),
    )
  }

  /** Reads the records of a reservation that was made; undefined if one of them has expired. */
  async read(attempt: Attempt): Promise<KeptReservation[] | undefined> {
    const { connection, overridden } = this.#options
    const records = await Promise.all(
      attempt.parts.map(async (part) => {
        const { recordKey } = this.#placeOf(attempt, part)
        try {
          const reply = await connection.call(recordKey, ['GET', recordKey], true)
          return reply === null ? undefined : readRecord(bytesReply(reply), overridden)
        } catch (error) {
          throw wrapRedisError(error, 'read a reservation')
        }
      }),
    )
    return records.every((record) => record !== undefined) ? records : undefined
  }

  /** Replaces the estimate with the actual cost in each slot. Undefined if the record of one of them is gone. */
  async end(
    attempt: Attempt,
    reservations: readonly KeptReservation[],
    amounts: Costs | undefined,
    currentGroup: SettlementRequest['currentGroup'],
  ): Promise<Settlement[] | undefined> {
    const ended = await Promise.all(
      reservations.map((made, i) => this.#endPart(attempt, attempt.parts[i] as Part, made, { amounts, currentGroup })),
    )
    return ended.every((settlement) => settlement !== undefined) ? ended : undefined
  }

  async #reservePart(attempt: Attempt, part: Part): Promise<KeptReservation | 'FULL'> {
    const { ask, overridden } = this.#options
    const { ttlTicks, onExpire, ruleSetId, reason, names, costs } = attempt.request
    const { charges, indexes } = part
    const terms = { ruleSetId, reason, names, costs: indexes.map((index) => costs[index] as (typeof costs)[0]) }
    const reservation = {
      ...this.#placeOf(attempt, part),
      ...{ ttlTicks, isRefunded: onExpire === 'REFUND', text: describe(terms, charges) },
    }
    const answer = await ask({ type: 'RESERVE', items: charges, reservation })
    return madeOf(terms, charges, answer, overridden)
  }

  async #abortPart(attempt: Attempt, part: Part, made: KeptReservation): Promise<void> {
    const items = endedItems(
      made,
      settledCharges(made, () => undefined),
      undefined,
    )
    if (items.length === 0) return
    const ending: Ending = { ...this.#placeOf(attempt, part), kind: 'ABORT', isTimed: false }
    await this.#options.ask({ type: 'END', items, ending })
  }

  async #endPart(
    attempt: Attempt,
    part: Part,
    made: KeptReservation,
    { amounts, currentGroup }: Pick<SettlementRequest, 'amounts' | 'currentGroup'>,
  ): Promise<Settlement | undefined> {
    const kind = amounts === undefined ? 'CANCEL' : 'SETTLE'
    const charges = settledCharges(made, currentGroup)
    const items = endedItems(made, charges, amounts)
    if (items.length === 0) return settlementOf(made, charges, { ...made.result, bands: [] }, kind === 'CANCEL')
    const ending: Ending = { ...this.#placeOf(attempt, part), kind, isTimed: false }
    const answer = await this.#options.ask({ type: 'END', items, ending })
    if (answer.reservation === undefined) return settlementOf(made, charges, resultOf(answer), kind === 'CANCEL')
    if (answer.reservation.status !== 'KNOWN') return undefined
    const { ended } = readRecord(answer.reservation.record, this.#options.overridden)
    return settlementOf(made, charges, endedResults(items, ended), kind === 'CANCEL')
  }

  /** The record of a part is in the slot of its buckets. */
  #placeOf({ attempt, request }: Attempt, { charges }: Part): ReservationPlace {
    const { prefix } = this.#options
    return placeOf(`${bucketPrefix(prefix, charges[0]?.key ?? '')}:${attempt}:reservation`, `${request.id}\n${attempt}`)
  }
}
