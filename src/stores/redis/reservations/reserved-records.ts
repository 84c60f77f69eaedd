/** Reads the open reservations of a key from its value, which lua/values.lua and lua/open-reservations.lua describe. */
import { isOpenAt } from '../../../algorithms/reservations/open-reservations.js'
import type { BucketGroup } from '../../../core/bucket-store.js'
import { noneReserved, type ReservedPermits } from '../../../core/reservations/reservation-storage.js'
import type { Band } from '../../../core/rule.js'
import type { GroupLayout } from '../bucket-keys.js'

const flagOf = { wide: 8, leased: 16, long: 32, definition: 64, reserved: 128 }
const logKind = 5
const holdsKind = 7
const headBytes = 21
const entryBytes = 41
const definitionBytes = 20

/** One record of a value: the open reservations of a band, or its bucket. */
interface BucketRecord {
  /** Identifies the band. */
  readonly id: number
  readonly isReserved: boolean
  /** Shares per permit, if the bucket is counted in shares. */
  readonly perPermit: number
  readonly bytes: Buffer
}

/** The open reservations of a key, by band of the group. */
export function reservedIn(
  value: Buffer,
  { bands }: BucketGroup,
  { ids }: Pick<GroupLayout, 'ids'>,
  now: number,
): readonly ReservedPermits[] {
  const records = recordsOf(value)
  return bands.map((band, i) => {
    const own = records.filter(({ id }) => id === ids[i])
    const reserved = own.find(({ isReserved }) => isReserved)
    const perPermit = own.find(({ isReserved }) => !isReserved)?.perPermit ?? 1
    return reserved === undefined ? noneReserved : sumOf(reserved.bytes, band, perPermit, now)
  })
}

function sumOf(record: Buffer, band: Band, perPermit: number, now: number): ReservedPermits {
  let reservations = 0
  let shares = 0
  for (let at = headBytes; at < record.length; at += entryBytes) {
    const entry = {
      takenAt: integer(record, at + 14, 7),
      endsAt: integer(record, at + 21, 7),
      isRefunded: record[at + 28] === 1,
    }
    if (!isOpenAt(entry, band, now)) continue
    reservations += 1
    shares += integer(record, at + 8, 6)
  }
  return { reservations, permits: Math.ceil(shares / perPermit) }
}

/** Splits a value into records, up to the entries of long logs, which follow the last record. */
function recordsOf(value: Buffer): readonly BucketRecord[] {
  const records: BucketRecord[] = []
  let end = value.length
  for (let at = 0; at + 4 <= end; ) {
    const tag = value.readUInt32LE(at)
    const hasDefinition = tag % flagOf.reserved >= flagOf.definition
    const flags = (tag % 256) - (hasDefinition ? flagOf.definition : 0)
    const size = sizeOf(value, at, flags) + (hasDefinition ? definitionBytes : 0)
    const bytes = value.subarray(at, at + size)
    if (size === 0 || bytes.length < size) break
    if (flags === logKind + flagOf.long) end = Math.min(end, bytes.readUInt32LE(33))
    const perPermit = hasDefinition ? perPermitOf(bytes.subarray(-definitionBytes)) : 1
    records.push({ id: Math.floor(tag / 256), isReserved: flags === flagOf.reserved, perPermit, bytes })
    at += size
  }
  return records
}

/** The size of a record without its definition; 0 if it is not a record. */
function sizeOf(value: Buffer, at: number, flags: number): number {
  const count = (offset: number): number => (at + offset + 2 <= value.length ? value.readUInt16LE(at + offset) : 0)
  const kind = flags % 8
  if (flags === flagOf.reserved) return headBytes + entryBytes * count(4)
  if (flags === logKind) return 12 + 10 * (value[at + 4] ?? 0)
  if (flags === logKind + flagOf.long) return entryBytes
  if (flags === holdsKind) return 19 + 17 * (count(4) + count(17))
  if (kind < 1 || kind >= holdsKind || kind === logKind || flags >= flagOf.long) return 0
  const isWide = flags % flagOf.leased >= flagOf.wide
  return (isWide ? 36 : 28) + (flags >= flagOf.leased ? 32 : 0)
}

/** A definition has its capacity, and the number of shares of a full bucket. */
const perPermitOf = (definition: Buffer): number => integer(definition, 14, 6) / definition.readUInt32LE(0)

/** An integer below 2⁵³, little endian. `readUIntLE` reads at most six bytes. */
const integer = (bytes: Buffer, at: number, size: number): number =>
  size <= 6 ? bytes.readUIntLE(at, size) : bytes.readUIntLE(at, 6) + (bytes[at + 6] as number) * 2 ** 48
