import { createHash } from 'node:crypto'
import type { BucketGroup, Charge, ChargeResult } from '../../../core/bucket-store.js'
import {
  actualPermits,
  type ChargedCost,
  chargedOf,
  type ReservationRequest,
  type ReservationStorage,
  type ReservationTerms,
  type ReservedPermits,
  type ReserveOutcome,
  type Settlement,
  type SettlementRequest,
  type SettleOutcome,
  unknownCostIn,
} from '../../../core/reservations/reservation-storage.js'
import type { RedisConnection } from '../../../redis/client/connection.js'
import { wrapRedisError } from '../../../redis/client/errors.js'
import { bytesReply, malformedReply } from '../../../redis/client/replies.js'
import { bucketPrefix, type Layouts } from '../bucket-keys.js'
import type { Answer } from '../decode.js'
import type { EndedCharge, Ending, Operation, ReservationPlace } from '../operation.js'
import { describe } from './description.js'
import { endedResults, type KeptReservation, readRecord, resultOf } from './record.js'
import { reservedIn } from './reserved-records.js'

export interface RedisReservationsOptions {
  readonly connection: RedisConnection
  readonly prefix: string
  /** Executes an operation of the script. */
  readonly ask: (operation: Operation) => Promise<Answer>
  readonly layouts: Layouts
  /** The group of an override of a rule. */
  readonly overridden: (rule: BucketGroup, override: Buffer) => BucketGroup
}

/** Reservations of this process whose description need not be read again. */
const maxKept = 10_000

/**
 * Reservations on one Redis server. Making one is a single call of the script, which charges the buckets and writes the record.
 * Settling one is a single call too. A process that did not make the reservation reads its record first.
 */
export class RedisReservations implements ReservationStorage {
  readonly #options: RedisReservationsOptions
  readonly #kept = new Map<string, KeptReservation>()

  constructor(options: RedisReservationsOptions) {
    this.#options = options
  }

  async reserve(request: ReservationRequest): Promise<ReserveOutcome> {
    const { id, charges, ttlTicks, onExpire } = request
    const reservation = {
      ...placeOf(this.#recordKey(id), id),
      ...{ ttlTicks, isRefunded: onExpire === 'REFUND', text: describe(request, charges) },
    }
    const answer = await this.#options.ask({ type: 'RESERVE', items: charges, reservation })
    const made = madeOf(request, charges, answer, this.#options.overridden)
    if (made === 'FULL') return made
    if (made.result.granted) this.#keep(id, made)
    const { ruleSetId, reason } = made.terms
    return { ruleSetId, reason, charges: made.charges, result: made.result }
  }

  async settle({ id, amounts, currentGroup }: SettlementRequest): Promise<SettleOutcome> {
    const { ask, overridden } = this.#options
    const kept = this.#kept.get(id) ?? (await this.#read(id))
    if (kept === undefined) return 'UNKNOWN'
    const { names } = kept.terms
    const unknownCost = unknownCostIn(amounts, names)
    if (unknownCost !== undefined) return { unknownCost, names }
    const charges = settledCharges(kept, currentGroup)
    const items = endedItems(kept, charges, amounts)
    const kind: Ending['kind'] = amounts === undefined ? 'CANCEL' : 'SETTLE'
    const ending = { ...placeOf(this.#recordKey(id), id), kind, isTimed: true }
    const answer = await ask({ type: 'END', items, ending })
    this.#kept.delete(id)
    if (answer.reservation === undefined) return settlementOf(kept, charges, resultOf(answer), kind === 'CANCEL')
    const { status, record } = answer.reservation
    if (status === 'UNKNOWN' || status === 'EXPIRED') return status
    const { ended, status: how } = readRecord(record, overridden)
    return settlementOf(kept, charges, endedResults(items, ended), how === 'CANCELED')
  }

  reservedIn(group: BucketGroup, key: string, now: number): Promise<readonly ReservedPermits[]> {
    return readReserved(this.#options, group, key, now)
  }

  #recordKey(id: string): string {
    return `${bucketPrefix(this.#options.prefix, id)}:reservation`
  }

  async #read(id: string): Promise<KeptReservation | undefined> {
    const { connection, overridden } = this.#options
    const key = this.#recordKey(id)
    let reply: unknown
    try {
      reply = await connection.call(key, ['GET', key], true)
    } catch (error) {
      throw wrapRedisError(error, 'settle a reservation')
    }
    return reply === null ? undefined : readRecord(bytesReply(reply), overridden)
  }

  #keep(id: string, made: KeptReservation): void {
    this.#kept.delete(id)
    this.#kept.set(id, made)
    if (this.#kept.size <= maxKept) return
    const [oldest = ''] = this.#kept.keys()
    this.#kept.delete(oldest)
  }
}

/** The open reservations of a key, by band of the group. */
export async function readReserved(
  { connection, prefix, layouts }: RedisReservationsOptions,
  group: BucketGroup,
  key: string,
  now: number,
): Promise<readonly ReservedPermits[]> {
  if (group.listed !== undefined) return []
  const layout = layouts.of(group)
  const name = bucketPrefix(prefix, key) + layout.suffix
  let reply: unknown
  try {
    reply = await connection.call(name, ['GET', name], true)
  } catch (error) {
    throw wrapRedisError(error, 'read reservations')
  }
  return reply === null ? [] : reservedIn(bytesReply(reply), group, layout, now)
}

/** Where the record of a reservation is, and its id in the buckets. */
export function placeOf(recordKey: string, id: string): ReservationPlace {
  const digest = createHash('sha256').update(id).digest()
  return { recordKey, id: [digest.readUInt32LE(0), digest.readUInt32LE(4)] }
}

/** The reservation that RESERVE has made or found. */
export function madeOf(
  { ruleSetId, reason, costs, names }: ReservationTerms,
  charges: readonly Charge[],
  answer: Answer,
  overridden: RedisReservationsOptions['overridden'],
): KeptReservation | 'FULL' {
  const { reservation, applied = charges } = answer
  if (reservation?.status === 'FULL') return 'FULL'
  if (reservation !== undefined) return readRecord(reservation.record, overridden)
  return { terms: { ruleSetId, reason, costs, names }, charges: applied, result: resultOf(answer) }
}

/** The charges of a reservation when it ends, with the current groups. An override stays the one that was charged. */
export const settledCharges = (
  { charges }: KeptReservation,
  currentGroup: SettlementRequest['currentGroup'],
): readonly Charge[] =>
  charges.map((charge) => {
    const { insteadOf: rule } = charge.group
    const current = currentGroup(rule ?? charge.group)
    const group = rule === undefined || current === undefined ? current : { ...charge.group, insteadOf: current }
    return { ...charge, group: group ?? charge.group, permits: 0 }
  })

/** The items of END: the charges that have buckets. A shadow rule that denied took no permits. */
export function endedItems(
  kept: KeptReservation,
  charges: readonly Charge[],
  amounts: SettlementRequest['amounts'],
): EndedCharge[] {
  const charged = chargedOf(kept.charges, kept.result)
  return charges.flatMap(({ group, key }, i) => {
    if (group.listed !== undefined) return []
    const made = kept.charges[i] as Charge
    const permits = charged[i] ? actualPermits(made, kept.terms.costs[i] as ChargedCost, amounts) : 0
    return [{ group, key, permits, estimate: charged[i] ? made.permits : 0 }]
  })
}

/** Joins the results of END with those of the keys without buckets, which have not changed. */
export function settlementOf(
  { terms: { ruleSetId, reason }, charges: made, result }: KeptReservation,
  charges: readonly Charge[],
  ended: ChargeResult,
  isCanceled: boolean,
): Settlement {
  const bands: ChargeResult['bands'][0][] = []
  let before = 0
  let after = 0
  for (const [i, { group }] of charges.entries()) {
    const own = made[i]?.group.bands.length ?? 0
    if (group.listed !== undefined) bands.push(...result.bands.slice(before, before + own))
    else {
      bands.push(...ended.bands.slice(after, after + group.bands.length))
      after += group.bands.length
    }
    before += own
  }
  if (after !== ended.bands.length) throw malformedReply('reservation')
  return { ruleSetId, reason, charges, result: { granted: true, now: ended.now, bands }, isCanceled }
}
