/**
 * An override as the few bytes that are kept in Redis and read by overrides.lua, seven for most limits:
 *
 *   byte      1 LIMIT, 2 ALLOW, 3 DENY; and 4 if it has bands, 8 if it expires, 16 if it has a note, 32 if it has a balance
 *   6 bytes   if it expires: epoch milliseconds
 *   4, 6      if it has a balance: permits, epoch milliseconds
 *   per band  a byte: its kind; and 8 if it has tokens, 16 if it has a label, 32 if its window is in ticks, 64 if its
 *             capacity is long, 128 if another one follows
 *             capacity, 2 bytes or 4; tokens, 4 bytes, unless as many as the capacity; window, 3 bytes of seconds, or ticks
 *             as a double; a label ended by a zero, unless it is the one that it has by itself
 *   the rest  the note
 *
 * Numbers are little endian.
 */
import { createHash } from 'node:crypto'
import { bandKind, kindOf } from '../../../algorithms/index.js'
import { bandLabel } from '../../../core/band-label.js'
import type { OverrideTerms, StartingBalance } from '../../../core/overrides/override-book.js'
import type { Band } from '../../../core/rule.js'
import { malformedReply } from '../../../redis/client/replies.js'

const actions = ['LIMIT', 'ALLOW', 'DENY'] as const
const actionBits = 3
const hasBands = 4
/** Such a one has to be looked at for its time. */
export const expires = 8
const hasNote = 16
const hasBalance = 32

const kindBits = 7
const hasTokens = 8
const hasLabel = 16
const inTicks = 32
const isLong = 64
const isFollowed = 128
const ticksPerSecond = 1_000_000

export function encodeTerms(terms: OverrideTerms): Buffer {
  const { action, bands, expiresAtMs, note, balance } = terms
  const flags =
    (bands.length > 0 ? hasBands : 0) +
    (expiresAtMs === undefined ? 0 : expires) +
    (note === undefined ? 0 : hasNote) +
    (balance === undefined ? 0 : hasBalance)
  const head = Buffer.of(actions.indexOf(action) + 1 + flags)
  const ending = expiresAtMs === undefined ? [] : [bytesOf(expiresAtMs, 6)]
  return Buffer.concat([head, ...ending, encodeLimit(terms), Buffer.from(note ?? '')])
}

function encodeLimit({ bands, balance }: Pick<OverrideTerms, 'bands' | 'balance'>): Buffer {
  const begins = balance === undefined ? [] : [bytesOf(balance.permits, 4), bytesOf(balance.atMs, 6)]
  return Buffer.concat([...begins, ...bands.map((band, i) => encodeBand(band, i + 1 < bands.length))])
}

function encodeBand(band: Band, another: boolean): Buffer {
  const { label, capacity, refillTokens, windowTicks } = band
  const seconds = windowTicks / ticksPerSecond
  const isShort = Number.isInteger(seconds) && seconds < 2 ** 24
  const parts = [bytesOf(capacity, capacity < 2 ** 16 ? 2 : 4)]
  if (refillTokens !== capacity) parts.push(bytesOf(refillTokens, 4))
  parts.push(isShort ? bytesOf(seconds, 3) : doubleOf(windowTicks))
  const isNamed = label !== bandLabel(band)
  if (isNamed) parts.push(Buffer.from(`${label}\0`))
  const flags =
    (refillTokens === capacity ? 0 : hasTokens) +
    (isNamed ? hasLabel : 0) +
    (isShort ? 0 : inTicks) +
    (capacity < 2 ** 16 ? 0 : isLong) +
    (another ? isFollowed : 0)
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

/** When an override ends, in epoch milliseconds. */
export const endOfTerms = (value: Buffer): number | undefined =>
  (value[0] as number) & expires ? value.readUIntLE(1, 6) : undefined

export function decodeTerms(value: Buffer): OverrideTerms {
  const reader = new Reader(value)
  const flags = reader.take(1)
  const expiresAtMs = flags & expires ? reader.take(6) : undefined
  const balance: StartingBalance | undefined =
    flags & hasBalance ? { permits: reader.take(4), atMs: reader.take(6) } : undefined
  const bands: Band[] = []
  for (let more = (flags & hasBands) !== 0; more; ) {
    const bits = reader.take(1)
    bands.push(decodeBand(bits, reader))
    more = (bits & isFollowed) !== 0
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
  const capacity = reader.take(bits & isLong ? 4 : 2)
  const refillTokens = bits & hasTokens ? reader.take(4) : capacity
  const windowTicks = bits & inTicks ? reader.takeDouble() : reader.take(3) * ticksPerSecond
  const band = { ...bandKind(bits & kindBits), capacity, refillTokens, windowTicks }
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
 * Buckets of other bands, or with another balance, have other names, so that no change of an override finds what it cannot
 * read. Ten digits of the SHA-1, which is what Redis can work out too.
 */
export const limitDigest = (terms: Pick<OverrideTerms, 'bands' | 'balance'>): string =>
  createHash('sha1').update(encodeLimit(terms)).digest('hex').slice(0, 10)
