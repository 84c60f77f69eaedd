/**
 * The binary encoding of an override, which overrides.lua reads. Most limits take seven bytes. Numbers are little endian.
 *
 *   1 byte     action: 1 LIMIT, 2 ALLOW, 3 DENY; plus flags: 4 has bands, 8 expires, 16 has a note, 32 has a balance
 *   6 bytes    if it expires: epoch milliseconds
 *   4 + 6      if it has a balance: permits, epoch milliseconds
 *   per band   1 byte: kind; plus flags: 8 has refill tokens, 16 has a label, 32 window in ticks, 64 long capacity,
 *              128 another band follows
 *              capacity: 2 bytes, or 4 if long
 *              refill tokens: 4 bytes, absent if equal to the capacity
 *              window: 3 bytes of seconds, or a double of ticks; 0 seconds for the calendar of a band of the rule, whose
 *              number, from 1, then replaces the refill tokens
 *              label: ends with a zero byte, absent if it is the default label
 *   remainder  the note
 */
import { createHash } from 'node:crypto'
import { bandKind, kindOf } from '../../../algorithms/index.js'
import { bandLabel } from '../../../core/band-label.js'
import type { OverrideTerms, StartingBalance } from '../../../core/overrides/override-storage.js'
import type { Band } from '../../../core/rule.js'
import { malformedReply } from '../../../redis/client/replies.js'

const actions = ['LIMIT', 'ALLOW', 'DENY'] as const
const actionBits = 3
const hasBands = 4
export const expiresFlag = 8
const hasNote = 16
const hasBalance = 32

const kindBits = 7
const hasTokens = 8
const hasLabel = 16
const inTicks = 32
const hasLongCapacity = 64
const hasNextBand = 128
const ticksPerSecond = 1_000_000

export function encodeTerms(terms: OverrideTerms): Buffer {
  const { action, bands, expiresAtMs, note, balance } = terms
  const flags =
    (bands.length > 0 ? hasBands : 0) +
    (expiresAtMs === undefined ? 0 : expiresFlag) +
    (note === undefined ? 0 : hasNote) +
    (balance === undefined ? 0 : hasBalance)
  const head = Buffer.of(actions.indexOf(action) + 1 + flags)
  const expiry = expiresAtMs === undefined ? [] : [bytesOf(expiresAtMs, 6)]
  return Buffer.concat([head, ...expiry, encodeLimit(terms), Buffer.from(note ?? '')])
}

function encodeLimit({ bands, balance }: Pick<OverrideTerms, 'bands' | 'balance'>): Buffer {
  const start = balance === undefined ? [] : [bytesOf(balance.permits, 4), bytesOf(balance.atMs, 6)]
  return Buffer.concat([...start, ...bands.map((band, i) => encodeBand(band, i + 1 < bands.length))])
}

function encodeBand(band: Band, hasNext: boolean): Buffer {
  const { label, capacity, calendarOf } = band
  const refillTokens = calendarOf === undefined ? band.refillTokens : calendarOf + 1
  const windowTicks = calendarOf === undefined ? band.windowTicks : 0
  const seconds = windowTicks / ticksPerSecond
  const isInSeconds = Number.isInteger(seconds) && seconds < 2 ** 24
  const parts = [bytesOf(capacity, capacity < 2 ** 16 ? 2 : 4)]
  const hasOwnTokens = refillTokens !== capacity || calendarOf !== undefined
  if (hasOwnTokens) parts.push(bytesOf(refillTokens, 4))
  parts.push(isInSeconds ? bytesOf(seconds, 3) : doubleOf(windowTicks))
  const isLabelled = label !== bandLabel(band) || calendarOf !== undefined
  if (isLabelled) parts.push(Buffer.from(`${label}\0`))
  const flags =
    (hasOwnTokens ? hasTokens : 0) +
    (isLabelled ? hasLabel : 0) +
    (isInSeconds ? 0 : inTicks) +
    (capacity < 2 ** 16 ? 0 : hasLongCapacity) +
    (hasNext ? hasNextBand : 0)
  return Buffer.concat([Buffer.of(kindOf(band) + flags), ...parts])
}

function bytesOf(value: number, count: number): Buffer {
  const bytes = Buffer.alloc(count)
  bytes.writeUIntLE(value, 0, count)
  return bytes
}

function doubleOf(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}

/** The expiry of an encoded override in epoch milliseconds; undefined if it never expires. */
export const expiryOf = (value: Buffer): number | undefined =>
  (value[0] as number) & expiresFlag ? value.readUIntLE(1, 6) : undefined

export function decodeTerms(value: Buffer): OverrideTerms {
  const reader = new Reader(value)
  const flags = reader.take(1)
  const expiresAtMs = flags & expiresFlag ? reader.take(6) : undefined
  const balance: StartingBalance | undefined =
    flags & hasBalance ? { permits: reader.take(4), atMs: reader.take(6) } : undefined
  const bands: Band[] = []
  for (let more = (flags & hasBands) !== 0; more; ) {
    const bits = reader.take(1)
    bands.push(decodeBand(bits, reader))
    more = (bits & hasNextBand) !== 0
  }
  const action = actions[(flags & actionBits) - 1]
  if (action === undefined) throw malformedReply('override')
  return {
    action,
    bands,
    expiresAtMs,
    note: flags & hasNote ? reader.rest() : undefined,
    ...(balance !== undefined && { balance }),
  }
}

function decodeBand(bits: number, reader: Reader): Band {
  const capacity = reader.take(bits & hasLongCapacity ? 4 : 2)
  const refillTokens = bits & hasTokens ? reader.take(4) : capacity
  const windowTicks = bits & inTicks ? reader.takeDouble() : reader.take(3) * ticksPerSecond
  const kind = bandKind(bits & kindBits)
  const band =
    windowTicks === 0
      ? { ...kind, capacity, refillTokens: capacity, windowTicks, calendarOf: refillTokens - 1 }
      : { ...kind, capacity, refillTokens, windowTicks }
  return { label: bits & hasLabel ? reader.takeText() : bandLabel(band), ...band }
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  take(count: number): number {
    this.#at += count
    return this.#bytes.readUIntLE(this.#at - count, count)
  }

  takeDouble(): number {
    this.#at += 8
    return this.#bytes.readDoubleLE(this.#at - 8)
  }

  takeText(): string {
    const end = this.#bytes.indexOf(0, this.#at)
    const text = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end + 1
    return text
  }

  rest(): string {
    return this.#bytes.toString('utf8', this.#at)
  }
}

/**
 * Ten hexadecimal digits of the SHA-1 of the bands and the balance. They are part of the names of the buckets, so that a changed
 * override never meets the state of other bands. The script computes the same digest.
 */
export const limitDigest = (terms: Pick<OverrideTerms, 'bands' | 'balance'>): string =>
  createHash('sha1').update(encodeLimit(terms)).digest('hex').slice(0, 10)
