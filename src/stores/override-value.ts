/**
 * An override as the few bytes that are kept in Redis and read by overrides.lua:
 *
 *   byte      1 LIMIT, 2 ALLOW, 3 DENY; and 8 if it expires, 16 if it has a note
 *   double    if it expires: epoch milliseconds
 *   LIMIT     a digest of the bands, eight letters; a byte, how many bands; of each kind (byte), capacity and tokens
 *             (32 bits), window in ticks (double), label ended by a zero
 *   the rest  the note
 *
 * Numbers are little endian.
 */
import { createHash } from 'node:crypto'
import { bandKind, kindOf } from '../algorithms/index.js'
import type { OverrideTerms } from '../core/override-book.js'
import type { Band } from '../core/rule.js'

const actions = ['LIMIT', 'ALLOW', 'DENY'] as const
const expires = 8
const hasNote = 16
const digestLength = 8

export function encodeTerms({ action, bands, expiresAtMs, note }: OverrideTerms): Buffer {
  const head = Buffer.alloc(expiresAtMs === undefined ? 1 : 9)
  const flags = (expiresAtMs === undefined ? 0 : expires) + (note === undefined ? 0 : hasNote)
  head.writeUInt8(actions.indexOf(action) + 1 + flags)
  if (expiresAtMs !== undefined) head.writeDoubleLE(expiresAtMs, 1)
  const limits = action === 'LIMIT' ? [Buffer.from(bandsDigest(bands)), encodeBands(bands)] : []
  return Buffer.concat([head, ...limits, Buffer.from(note ?? '')])
}

function encodeBands(bands: readonly Band[]): Buffer {
  const parts = bands.map((band) => {
    const numbers = Buffer.alloc(17)
    numbers.writeUInt8(kindOf(band), 0)
    numbers.writeUInt32LE(band.capacity, 1)
    numbers.writeUInt32LE(band.refillTokens, 5)
    numbers.writeDoubleLE(band.windowTicks, 9)
    return Buffer.concat([numbers, Buffer.from(`${band.label}\0`)])
  })
  return Buffer.concat([Buffer.of(bands.length), ...parts])
}

export function decodeTerms(value: Buffer): OverrideTerms {
  const flags = value.readUInt8(0)
  const action = actions[(flags & 7) - 1] as OverrideTerms['action']
  let at = 1
  let expiresAtMs: number | undefined
  if (flags & expires) {
    expiresAtMs = value.readDoubleLE(1)
    at = 9
  }
  const bands: Band[] = []
  if (action === 'LIMIT') {
    at += digestLength
    const count = value.readUInt8(at++)
    while (bands.length < count) {
      const end = value.indexOf(0, at + 17)
      bands.push({
        label: value.toString('utf8', at + 17, end),
        ...bandKind(value.readUInt8(at)),
        capacity: value.readUInt32LE(at + 1),
        refillTokens: value.readUInt32LE(at + 5),
        windowTicks: value.readDoubleLE(at + 9),
      })
      at = end + 1
    }
  }
  return { action, bands, expiresAtMs, note: flags & hasNote ? value.toString('utf8', at) : undefined }
}

/** Buckets of other bands have other names, so that no change of an override finds what it cannot read. */
export const bandsDigest = (bands: readonly Band[]): string =>
  createHash('sha1').update(encodeBands(bands)).digest('base64url').slice(0, digestLength)
