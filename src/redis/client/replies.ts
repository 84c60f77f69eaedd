/** Validates the shape of replies before they are used. */
import { FluxGateError } from '../../core/errors.js'

/** The error for a reply of the wrong type or length: a client transforms replies, or a proxy changes them. */
export const unexpectedReply = (expected: string, reply: unknown): FluxGateError =>
  storeFailed(`${shapeOf(reply)} instead of ${expected}`)

/** The error for a reply of the right shape that contains an impossible value. */
export const malformedReply = (what: string): FluxGateError => storeFailed(`a malformed ${what}`)

const storeFailed = (found: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_FAILED',
    `Redis returned ${found}. Use a client and a proxy that pass replies on unchanged.`,
  )

export function bytesReply(reply: unknown): Buffer {
  if (Buffer.isBuffer(reply)) return reply
  throw unexpectedReply('bytes', reply)
}

export function integerReply(reply: unknown): number {
  if (Number.isSafeInteger(reply)) return reply as number
  throw unexpectedReply('an integer', reply)
}

export function integersReply(reply: unknown): readonly number[] {
  if (Array.isArray(reply) && reply.length > 0 && reply.every(Number.isSafeInteger)) return reply
  throw unexpectedReply('a list of integers', reply)
}

/** A flat list of alternating names and values. */
export function pairsReply(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply) && reply.length % 2 === 0) return reply
  throw unexpectedReply('a list of pairs', reply)
}

export function bytePairsReply(reply: unknown): readonly Buffer[] {
  const pairs = pairsReply(reply)
  if (pairs.every(Buffer.isBuffer)) return pairs as readonly Buffer[]
  throw unexpectedReply('a list of pairs of bytes', reply)
}

/** True for the values that a call with `asBytes` returns: integers, bytes, nulls and lists of these. */
export const isByteReply = (reply: unknown): boolean =>
  Buffer.isBuffer(reply) ||
  reply === null ||
  Number.isSafeInteger(reply) ||
  (Array.isArray(reply) && reply.every(isByteReply))

/** Describes the type and length of a reply, never its content, which may contain an identity of a client. */
function shapeOf(reply: unknown): string {
  if (Buffer.isBuffer(reply)) return `${reply.length} bytes`
  if (typeof reply === 'string') return `a string of ${reply.length} characters`
  if (Array.isArray(reply)) return `a list of ${reply.length} items`
  if (reply === null || reply === undefined) return `${reply}`
  return typeof reply === 'object' ? 'an object' : `a ${typeof reply}`
}
