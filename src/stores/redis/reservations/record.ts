/** Reads the record of a reservation, which lua/reservations.lua describes. */
import type { BucketGroup, Charge, ChargeResult } from '../../../core/bucket-store.js'
import type { ReservationTerms } from '../../../core/reservations/reservation-storage.js'
import { malformedReply } from '../../../redis/client/replies.js'
import { type Answer, decode } from '../decode.js'
import type { EndedCharge, Operation } from '../operation.js'
import { parseDescription } from './description.js'

/** A reservation as Redis keeps it. */
export interface KeptReservation {
  readonly terms: ReservationTerms
  /** The charges, with the groups of overrides. */
  readonly charges: readonly Charge[]
  readonly result: ChargeResult
}

export interface ReservationRecord extends KeptReservation {
  readonly status: 'OPEN' | 'SETTLED' | 'CANCELED'
  /** The results of END as they were returned; empty if the reservation is open. */
  readonly ended: Buffer
}

const statuses = ['OPEN', 'SETTLED', 'CANCELED'] as const
const headBytes = 26

/** `overridden` returns the group of an override of a rule. */
export function readRecord(
  record: Buffer,
  overridden: (rule: BucketGroup, override: Buffer) => BucketGroup,
): ReservationRecord {
  if (record.length < headBytes) throw malformedReply('reservation')
  const status = statuses[record[8] as number]
  const sizes = [10, 14, 18, 22].map((at) => record.readUInt32LE(at))
  const sum = sizes.reduce((total, size) => total + size, headBytes)
  if (status === undefined || sum !== record.length) throw malformedReply('reservation')
  let at = headBytes
  const [text, made, overrides, ended] = sizes.map((size) => {
    at += size
    return record.subarray(at - size, at)
  }) as [Buffer, Buffer, Buffer, Buffer]
  const { terms, charges: given } = parseDescription(text.toString('latin1'))
  const charges = withOverrides(given, overrides, overridden)
  return { terms, charges, result: resultsOf({ type: 'RESERVE', items: charges } as Operation, made), status, ended }
}

/** The results of END, for the items that it had. */
export const endedResults = (items: readonly EndedCharge[], ended: Buffer): ChargeResult =>
  resultsOf({ type: 'END', items } as unknown as Operation, ended)

function resultsOf(operation: Operation, bytes: Buffer): ChargeResult {
  const [answer] = decode([operation], bytes)
  if (answer === undefined || !('granted' in answer)) throw malformedReply('reservation')
  return resultOf(answer)
}

export const resultOf = ({ granted, now, bands }: Answer): ChargeResult => ({ granted, now, bands })

function withOverrides(
  charges: readonly Charge[],
  overrides: Buffer,
  overridden: (rule: BucketGroup, override: Buffer) => BucketGroup,
): readonly Charge[] {
  const applied = [...charges]
  for (let at = 0; at < overrides.length; ) {
    if (at + 6 > overrides.length) throw malformedReply('reservation')
    const index = overrides.readUInt16LE(at) - 1
    const size = overrides.readUInt32LE(at + 2)
    const charge = applied[index]
    if (charge === undefined || at + 6 + size > overrides.length) throw malformedReply('reservation')
    applied[index] = { ...charge, group: overridden(charge.group, overrides.subarray(at + 6, at + 6 + size)) }
    at += 6 + size
  }
  return applied
}
