/** The bytes are not a protobuf message of the expected type. */
export class MalformedMessage extends Error {}

export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

/** Groups are obsolete, and unknown fields may nest them. */
const startGroup = 3
const endGroup = 4
const maxGroupDepth = 16

/**
 * Reads the fields of one protobuf message after the other. Every read is bounded by the end of the message, so that malformed
 * bytes throw `MalformedMessage` and never read beyond it.
 */
export class WireReader {
  readonly #bytes: Buffer
  #at: number
  #end: number
  /** The number of the current field, after `next`. */
  field = 0
  /** The wire type of the current field. */
  type = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#at = 0
    this.#end = bytes.length
  }

  /** Moves to the next field of the message. Returns false at its end. */
  next(): boolean {
    if (this.#at >= this.#end) return false
    const tag = this.#varint()
    this.field = Math.floor(tag / 8)
    this.type = tag % 8
    if (this.field === 0 || tag > 0xffffffff) throw new MalformedMessage(`The field number ${this.field} is invalid.`)
    return true
  }

  /** Enters the current field, which is a message. Returns the end of the outer message, for `leave`. */
  enter(): number {
    const outer = this.#end
    this.#end = this.#endOfBytes()
    return outer
  }

  /** Leaves the message that `enter` has entered. All of its fields must have been read. */
  leave(outer: number): void {
    this.#end = outer
  }

  /** Reads text. Bytes that are not UTF-8 become U+FFFD: a failure would let a client that sends them bypass its limit. */
  string(): string {
    const end = this.#endOfBytes()
    const from = this.#at
    this.#at = end
    return this.#bytes.toString('utf8', from, end)
  }

  /** Reads 32 bits as an unsigned number. Truncates a larger number, as protobuf requires. */
  uint32(): number {
    return this.#unsigned(32)
  }

  bool(): boolean {
    this.#require(wireTypes.varint)
    return this.#varint() !== 0
  }

  /** Reads 64 bits as an unsigned number. Beyond 2^53 it is rounded. */
  uint64(): number {
    return this.#unsigned(64)
  }

  /** Skips the current field, whose number is unknown. */
  skip(depth = 0): void {
    switch (this.type) {
      case wireTypes.varint:
        this.#varint()
        return
      case wireTypes.fixed64:
        this.#advance(8)
        return
      case wireTypes.bytes:
        this.#at = this.#endOfBytes()
        return
      case wireTypes.fixed32:
        this.#advance(4)
        return
      case startGroup:
        this.#skipGroup(depth)
        return
      default:
        throw new MalformedMessage(`Field ${this.field} has the invalid wire type ${this.type}.`)
    }
  }

  #skipGroup(depth: number): void {
    const { field } = this
    if (depth >= maxGroupDepth) throw new MalformedMessage(`Field ${field} is nested too deeply.`)
    while (this.next()) {
      if (this.type !== endGroup) this.skip(depth + 1)
      else if (this.field === field) return
      else throw new MalformedMessage(`The group ${field} ends as ${this.field}.`)
    }
    throw new MalformedMessage(`The group ${field} does not end.`)
  }

  #require(type: number): void {
    if (this.type !== type)
      throw new MalformedMessage(`Field ${this.field} has the wire type ${this.type}; expected ${type}.`)
  }

  #endOfBytes(): number {
    this.#require(wireTypes.bytes)
    const length = this.#varint()
    if (length > this.#end - this.#at) throw new MalformedMessage(`Field ${this.field} is longer than its message.`)
    return this.#at + length
  }

  #unsigned(bits: number): number {
    this.#require(wireTypes.varint)
    const from = this.#at
    const value = this.#varint()
    if (value < 2 ** Math.min(bits, 53)) return value
    return truncated(this.#bytes.subarray(from, this.#at), bits)
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw new MalformedMessage(`Field ${this.field} is longer than its message.`)
    this.#at += count
  }

  #varint(): number {
    const bytes = this.#bytes
    const end = this.#end
    let at = this.#at
    let byte = at < end ? (bytes[at++] as number) : -1
    if (byte >= 0 && byte < 0x80) {
      this.#at = at
      return byte
    }
    let value = 0
    let factor = 1
    for (let i = 0; i < 10; i++) {
      if (byte === -1) throw new MalformedMessage('The message ends within a number.')
      value += (byte & 0x7f) * factor
      if (byte < 0x80) {
        this.#at = at
        return value
      }
      factor *= 0x80
      byte = at < end ? (bytes[at++] as number) : -1
    }
    throw new MalformedMessage('A number has more than ten bytes.')
  }
}

/** The lowest bits of a number of up to ten bytes, which have 70 bits. */
function truncated(bytes: Buffer, bits: number): number {
  let value = 0n
  for (const byte of bytes.toReversed()) value = (value << 7n) | BigInt(byte & 0x7f)
  return Number(BigInt.asUintN(bits, value))
}
