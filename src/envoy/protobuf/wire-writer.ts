import { wireTypes } from './wire-reader.js'

/**
 * Writes protobuf messages into one growing buffer, which is used again for the next message. Fields with the default value of
 * proto3 (0, false, empty text) are omitted.
 */
export class WireWriter {
  #bytes: Buffer
  #at = 0

  constructor(size = 1_024) {
    this.#bytes = Buffer.allocUnsafe(size)
  }

  /** The number of bytes that were written since the last `finish`. */
  get length(): number {
    return this.#at
  }

  /** Returns a copy of the message, and starts the next one. */
  finish(): Buffer {
    const message = Buffer.allocUnsafe(this.#at)
    this.#bytes.copy(message, 0, 0, this.#at)
    this.#at = 0
    return message
  }

  uint(field: number, value: number): void {
    if (value !== 0) this.index(field, value)
  }

  /** Like `uint`, also for 0: in proto2 an absent field differs from 0. */
  index(field: number, value: number): void {
    this.#reserve(20)
    this.#varint(field * 8 + wireTypes.varint)
    this.#varint(value)
  }

  bool(field: number, value: boolean): void {
    this.uint(field, value ? 1 : 0)
  }

  string(field: number, text: string): void {
    if (text.length > 0) this.requiredString(field, text)
  }

  /** Writes the field even if it is empty, for items of a list. */
  requiredString(field: number, text: string): void {
    // A UTF-16 code unit has at most three bytes in UTF-8.
    this.#reserve(3 * text.length + 20)
    this.#varint(field * 8 + wireTypes.bytes)
    if (text.length < 0x80 / 3) {
      const start = this.#at + 1
      const length = this.#bytes.write(text, start)
      this.#bytes[this.#at] = length
      this.#at = start + length
      return
    }
    this.#varint(Buffer.byteLength(text))
    this.#at += this.#bytes.write(text, this.#at)
  }

  bytes(field: number, bytes: Buffer): void {
    this.#reserve(bytes.length + 20)
    this.#varint(field * 8 + wireTypes.bytes)
    this.#varint(bytes.length)
    bytes.copy(this.#bytes, this.#at)
    this.#at += bytes.length
  }

  /** Begins a message as a field. Returns where it begins, for `end`. Most messages are shorter than 128 bytes. */
  begin(field: number): number {
    this.#reserve(20)
    this.#varint(field * 8 + wireTypes.bytes)
    this.#at += 1
    return this.#at
  }

  /** Ends the message that begins at `start`: writes its length, and moves its content if the length needs several bytes. */
  end(start: number): void {
    const length = this.#at - start
    if (length < 0x80) {
      this.#bytes[start - 1] = length
      return
    }
    const more = bytesOf(length) - 1
    this.#reserve(more)
    this.#bytes.copyWithin(start + more, start, this.#at)
    this.#at = start - 1
    this.#varint(length)
    this.#at += length
  }

  #varint(value: number): void {
    let left = value
    while (left >= 0x80) {
      this.#bytes[this.#at++] = (left % 0x80) | 0x80
      left = Math.floor(left / 0x80)
    }
    this.#bytes[this.#at++] = left
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#at + count))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

const bytesOf = (length: number): number => Math.ceil((32 - Math.clz32(length)) / 7)
