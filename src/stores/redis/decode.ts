/** Decodes the reply of the script. consume.lua describes the layout. */
import { endianness } from 'node:os'
import { cellsOf } from '../../algorithms/index.js'
import { newStep } from '../../core/algorithm.js'
import { type BandResult, type BucketGroup, type Charge, chargeOf, type LeaseResult } from '../../core/bucket-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { Band } from '../../core/rule.js'
import { bytesReply, malformedReply, unexpectedReply } from '../../redis/client/replies.js'
import type { Message } from './encode.js'
import { isCharge, type Lookup, type Operation } from './operation.js'

const [denied, granted, unable, allowed, empty] = [0, 1, 2, 3, 4]

/**
 * The numbers of a bucket that rejected; for a log, the tick until which it stays unchanged and its timestamp. If the store's
 * clock has stepped back, a fifth number is the timestamp before the step. Undefined for an unused bucket, null if unknown.
 */
export type BucketState = readonly number[] | undefined | null

export interface Answer extends LeaseResult {
  /** RELEASE: the number of released holds. RENEW: the number of bands without the hold. */
  readonly holds?: number
  /** Set if a reservation was not made or ended, because of its record. */
  readonly reservation?: ReservationProblem
  /** The state of each band, if a charge or peek was rejected. */
  readonly states?: readonly BucketState[]
  /** Per charge, the tick at which the ban of its key ends; 0 without a ban. Set if a charge whose rule has a ban was rejected. */
  readonly bannedUntil?: readonly number[]
  /** Per charge, true if this decision has started its ban. Set together with `bannedUntil`. */
  readonly startedBans?: readonly boolean[]
}

/** KNOWN: the reservation exists already, or has ended. `record` is then its record. */
interface ReservationProblem {
  readonly status: 'KNOWN' | 'UNKNOWN' | 'EXPIRED' | 'FULL'
  readonly record: Buffer
}

/** Returns the group of a key for the override that was found: of the key, of its range, or none. */
export type Found = (lookup: Lookup, override: Buffer | undefined, now: number) => BucketGroup

/** Returns the new edit if overrides were edited since the known edit. The script has then executed nothing. */
export function newEdit(reply: unknown): string | undefined {
  if (!Array.isArray(reply)) return undefined
  const [first, edit] = reply
  // Results are at least one number of eight bytes.
  return Buffer.isBuffer(first) && first.length === stale.length && first.equals(stale)
    ? bytesReply(edit).toString()
    : undefined
}
const stale = Buffer.from('STALE')

/**
 * Returns the result of each operation; an error concerns only its own operation. Throws `FLUXGATE_STORE_FAILED` if the reply does not
 * have exactly the layout for these operations.
 */
export function decode(
  batch: readonly Operation[],
  reply: unknown,
  { lookups, namesOverrides }: Pick<Message, 'lookups' | 'namesOverrides'> = { lookups: [], namesOverrides: false },
  found?: Found,
): (Answer | UnknownPeriod | FluxGateError)[] {
  const [bytes, ...problems] = Array.isArray(reply) ? reply : [reply]
  const numbers = doublesOf(bytes)
  const overrides: readonly unknown[] = Array.isArray(problems.at(-1)) ? problems.pop() : []
  const overridden =
    found && lookups.length > 0 ? appliedBy(overrides, lookups, numbers[0] as number, found) : undefined
  if (overridden === undefined && overrides.length > 0) throw unexpectedReply('results without overrides', reply)
  if (!isCount(numbers[0] as number)) throw malformedReply('time')
  const reader: Reader = { numbers, at: 1 }
  let problem = 0
  const decoded = batch.map((operation) => {
    const applied = overridden?.get(operation) ?? (namesOverrides ? cachedOverrides(operation) : undefined)
    return readAnswer(reader, operation, applied) ?? problemOf(problems[problem++], numbers[0] as number)
  })
  if (reader.at !== numbers.length || problem !== problems.length)
    throw unexpectedReply(`results of ${batch.length} decisions`, bytes)
  return decoded
}

/** An operation was not executed, because a calendar band has no period for this tick. */
export class UnknownPeriod {
  readonly tick: number
  /** The server's time. */
  readonly now: number

  constructor(tick: number, now: number) {
    this.tick = tick
    this.now = now
  }
}

function problemOf(problem: unknown, now: number): Answer | FluxGateError | UnknownPeriod {
  const bytes = bytesReply(problem)
  const [found, status] = /^RESERVATION (KNOWN|UNKNOWN|EXPIRED|FULL) ?/.exec(bytes.toString('latin1', 0, 24)) ?? []
  if (found !== undefined) {
    const reservation = { status: status as ReservationProblem['status'], record: bytes.subarray(found.length) }
    return { granted: false, now, bands: [], reservation }
  }
  const text = bytes.toString()
  const [, tick] = /^PERIOD (\d{1,16})$/.exec(text) ?? []
  if (tick !== undefined) return new UnknownPeriod(Number(tick), now)
  return new FluxGateError('FLUXGATE_BUCKET_INVALID', `The bucket store could not decide: ${text}.`)
}

/** The operations whose results have no bands. */
const withoutBands: ReadonlySet<Operation['type']> = new Set(['REFUND', 'SETTLE', 'RESET', 'BACKDATE'])

/** The operations that report no buckets with a rejection. */
const withoutStates: ReadonlySet<Operation['type']> = new Set(['LEASE', 'PARTIAL'])

/** The numbers of a reply, and the index of the next one. Reading past the end advances too, so a short reply is detected. */
interface Reader {
  readonly numbers: Float64Array
  at: number
}

/** Returns undefined if the operation failed. */
function readAnswer(reader: Reader, operation: Operation, applied: readonly Charge[] | undefined): Answer | undefined {
  const now = reader.numbers[0] as number
  const outcome = reader.numbers[reader.at] as number
  if (outcome < 0) return readTaken(reader, operation, applied)
  reader.at += 1
  if (outcome === unable) return undefined
  if (outcome === empty) return readEmpty(reader, operation, applied)
  const isGranted = outcome === granted || outcome === allowed
  if (!isGranted && outcome !== denied) throw malformedReply('outcome')
  if (operation.type === 'RELEASE' || operation.type === 'RENEW') {
    const holds = reader.numbers[reader.at++] as number
    if (!isCount(holds)) throw malformedReply('holds')
    return { granted: isGranted, now, bands: [], holds }
  }
  if (withoutBands.has(operation.type)) return { granted: isGranted, now, bands: [] }
  const bands: BandResult[] = []
  const states: BucketState[] | undefined = isGranted || withoutStates.has(operation.type) ? undefined : []
  for (const { group } of applied ?? operation.items)
    for (let band = 0; band < group.bands.length; band++) {
      bands.push(outcome === allowed ? readAllowed(reader) : readBand(reader))
      states?.push(readState(reader))
    }
  const answer: Answer =
    applied === undefined ? { granted: isGranted, now, bands } : { granted: isGranted, now, bands, applied }
  if (states !== undefined) {
    return { ...answer, states, ...readBans(reader, (applied ?? operation.items) as readonly Charge[], bands) }
  }
  if (operation.type === 'PARTIAL') return { ...answer, taken: readCount(reader) }
  return operation.type === 'LEASE' && isGranted ? { ...answer, lease: readLease(reader) } : answer
}

/** Reads the bans of a rejected operation, and marks the bands of banned keys. Returns undefined if no rule has a ban. */
function readBans(
  reader: Reader,
  charges: readonly Charge[],
  bands: BandResult[],
): Pick<Answer, 'bannedUntil' | 'startedBans'> | undefined {
  if (!charges.some(({ group }) => group.ban !== undefined)) return undefined
  const startedBans: boolean[] = []
  let first = 0
  const bannedUntil = charges.map(({ group, shadow }, i) => {
    const last = first + group.bands.length
    let until = 0
    startedBans[i] = false
    if (group.ban !== undefined && group.listed === undefined && !shadow) {
      until = reader.numbers[reader.at++] as number
      const hasStarted = reader.numbers[reader.at++] as number
      if (!isCount(until) || !isCount(hasStarted)) throw malformedReply('ban')
      startedBans[i] = until > 0 && hasStarted > 0
      // The rejection that starts a ban is a rejection by the limit.
      if (until > 0 && hasStarted === 0)
        for (let band = first; band < last; band++) bands[band] = { ...(bands[band] as BandResult), banned: true }
    }
    first = last
    return until
  })
  return { bannedUntil, startedBans }
}

/** All bands allow without a delay. The script returns one number per band. */
function readTaken(reader: Reader, operation: Operation, applied: readonly Charge[] | undefined): Answer {
  if (operation.type !== 'CHARGE') throw malformedReply('outcome')
  const now = reader.numbers[0] as number
  const items = applied ?? operation.items
  const group = items.length === 1 ? (items[0] as Charge).group : undefined
  // An array that grows from empty would reserve room for 17 bands.
  const bands =
    group?.bands.length === 1
      ? [readTakenBand(reader, group.bands[0] as Band)]
      : items.flatMap((item) => item.group.bands.map((band) => readTakenBand(reader, band)))
  return applied === undefined ? { granted: true, now, bands } : { granted: true, now, bands, applied }
}

/** Computes the result of a band from its number, with the same operations as its algorithm. */
function readTakenBand(reader: Reader, band: Band): BandResult {
  const { capacity, refillTokens, windowTicks } = band
  const now = reader.numbers[0] as number
  const taken = -(reader.numbers[reader.at++] as number)
  let missing = taken
  let resetAt: number
  if (isSteady(band)) {
    missing = Math.floor(taken / windowTicks)
    if (missing * windowTicks < taken) missing += 1
    resetAt = now + Math.ceil(taken / refillTokens)
  } else resetAt = Math.floor(now / windowTicks) * windowTicks + windowTicks
  if (!isCount(taken) || missing > capacity || !isCount(resetAt)) throw malformedReply('band')
  return { allowed: true, delay: 0, retryAfter: 0, remaining: capacity - missing, resetAt }
}

/** The script returns only the buckets. The algorithm computes the results here as it would there. */
function readEmpty(reader: Reader, operation: Operation, applied: readonly Charge[] | undefined): Answer {
  if (operation.type !== 'CHARGE') throw malformedReply('outcome')
  const now = reader.numbers[0] as number
  const bands: BandResult[] = []
  const states: BucketState[] = []
  let isDenied = false
  for (const { group, permits } of applied ?? operation.items)
    for (const band of group.bands) {
      const state = readTokenBucket(reader, band)
      const result = resultOf(band, state, permits, now)
      // A band that would have allowed is not charged, so its result is that of zero permits.
      bands.push(result.allowed ? resultOf(band, state, 0, now) : result)
      states.push(state)
      isDenied ||= !result.allowed
    }
  if (!isDenied) throw malformedReply('outcome')
  return applied === undefined
    ? { granted: false, now, bands, states }
    : { granted: false, now, bands, applied, states }
}

function readTokenBucket(reader: Reader, band: Band): readonly number[] {
  const { numbers, at } = reader
  reader.at += 3
  const [whole = unset, fraction = unset, writtenAt = unset] = numbers.subarray(at, at + 3)
  const isSound = isCount(whole) && isCount(fraction) && isCount(writtenAt) && isSteady(band)
  if (!isSound || fraction >= band.windowTicks || writtenAt > (numbers[0] as number)) throw malformedReply('state')
  return [whole, fraction, writtenAt, band.windowTicks]
}

const unset = Number.NaN

const isSteady = ({ algorithm, refill }: Band): boolean => algorithm === 'TOKEN_BUCKET' && refill === 'STEADY'

const scratchCells = new Float64Array(4)
const scratchStep = newStep()

function resultOf(band: Band, state: readonly number[], permits: number, now: number): BandResult {
  scratchCells.set(state)
  cellsOf(band)?.step(scratchCells, 0, band, permits, now, 0, scratchStep)
  const { allowed, delay, retryAfter, remaining, resetAt } = scratchStep
  return { allowed, delay, retryAfter, remaining, resetAt }
}

function readAllowed(reader: Reader): BandResult {
  const remaining = reader.numbers[reader.at++] as number
  const resetAt = reader.numbers[reader.at++] as number
  if (!isCount(remaining) || !isCount(resetAt)) throw malformedReply('band')
  return { allowed: true, delay: 0, retryAfter: 0, remaining, resetAt }
}

function readBand(reader: Reader): BandResult {
  const retryAfter = reader.numbers[reader.at++] as number
  const delay = reader.numbers[reader.at++] as number
  const isSound = (isCount(retryAfter) || retryAfter === never) && delay >= 0 && delay < maxTicks
  if (!isSound) throw malformedReply('band')
  const { remaining, resetAt } = readAllowed(reader)
  return {
    allowed: retryAfter === 0,
    delay,
    retryAfter: retryAfter === never ? Number.POSITIVE_INFINITY : retryAfter,
    remaining,
    resetAt,
  }
}

function readState(reader: Reader): BucketState {
  const { numbers, at } = reader
  reader.at += 5
  const size = numbers[at] as number
  if (size === unknownState) return null
  if (size === 0) return undefined
  const state = [...numbers.subarray(at + 1, at + 5)]
  if (size > state.length) state.push(size)
  else if (size !== state.length) throw malformedReply('state')
  if (!isCount(size) || state.some(Number.isNaN)) throw malformedReply('state')
  return state
}

function readLease(reader: Reader): { permits: number; ending: number } {
  return { permits: readCount(reader), ending: readCount(reader) }
}

function readCount(reader: Reader): number {
  const count = reader.numbers[reader.at++] as number
  if (!isCount(count)) throw malformedReply('count')
  return count
}

const never = -1
const unknownState = -1
const maxTicks = 2 ** 53
/** True for a number of permits or ticks. False for missing numbers. */
const isCount = (value: number): boolean => value >= 0 && Number.isSafeInteger(value)

const cachedOverrides = (operation: Operation): readonly Charge[] | undefined =>
  isCharge(operation) && operation.items.some(({ group }) => group.insteadOf !== undefined)
    ? operation.items
    : undefined

/**
 * Returns the charges of each operation that has an override, with the groups of the overrides. `overrides` alternates between the
 * index of a lookup and its override.
 */
function appliedBy(
  overrides: readonly unknown[],
  lookups: readonly Lookup[],
  now: number,
  found: Found,
): ReadonlyMap<Operation, readonly Charge[]> {
  const applied = new Map<Operation, Charge[]>()
  let next = 0
  for (const [i, lookup] of lookups.entries()) {
    const { operation, item } = lookup
    const override = overrides[next] === i ? bytesReply(overrides[next + 1]) : undefined
    if (override !== undefined) next += 2
    if (!isCharge(operation)) continue
    const charge = operation.items[item] as Charge
    const group = found(lookup, override, now)
    if (group === charge.group) continue
    const charges = applied.get(operation) ?? [...operation.items]
    charges[item] = { ...chargeOf({ ...charge, group }, charge.key, charge.permits), hold: charge.hold }
    applied.set(operation, charges)
  }
  if (next !== overrides.length) throw unexpectedReply(`overrides of ${lookups.length} lookups`, overrides)
  return applied
}

/** Copies the bytes, because doubles must be aligned to eight bytes and replies are not. */
function doublesOf(reply: unknown): Float64Array {
  if (!Buffer.isBuffer(reply) || reply.length === 0 || reply.length % 8 !== 0)
    throw unexpectedReply('whole numbers of eight bytes', reply)
  const copy = new Float64Array(reply.length / 8)
  const target = Buffer.from(copy.buffer)
  target.set(reply)
  if (endianness() !== 'LE') target.swap64()
  return copy
}
