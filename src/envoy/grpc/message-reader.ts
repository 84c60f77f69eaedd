import { GrpcError } from './status.js'

/** Length of the prefix of a message: whether it is compressed, and its length. */
const prefixLength = 5

/** Prefixes a message with its length. */
export function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(prefixLength + message.length)
  frame[0] = 0
  frame.writeUInt32BE(message.length, 1)
  message.copy(frame, prefixLength)
  return frame
}

/** The bytes that all calls of a server may keep while their messages are incomplete. */
export interface ByteBudget {
  left: number
}

/** Splits the data of a call into messages. Keeps at most one incomplete message, whose length is limited. */
export class MessageReader {
  readonly #maxLength: number
  readonly #budget: ByteBudget
  /** The incomplete message with its prefix. Grows with the bytes that arrive, not with the length that the client announces. */
  #kept: Buffer | undefined
  #keptLength = 0

  constructor(maxLength: number, budget: ByteBudget) {
    this.#maxLength = maxLength
    this.#budget = budget
  }

  /** True if the last message is incomplete. */
  get isIncomplete(): boolean {
    return this.#keptLength > 0
  }

  /** Calls `onMessage` for every complete message. Throws a GrpcError if one is invalid. */
  push(chunk: Buffer, onMessage: (message: Buffer) => void): void {
    let data = chunk
    if (this.#kept !== undefined) {
      this.#keep(chunk)
      data = this.#kept.subarray(0, this.#keptLength)
    }
    let at = 0
    while (data.length - at >= prefixLength) {
      const end = at + prefixLength + this.#lengthAt(data, at)
      if (end > data.length) break
      onMessage(data.subarray(at + prefixLength, end))
      at = end
    }
    if (this.#kept === undefined) {
      if (at < data.length) this.#keep(data.subarray(at))
    } else if (at > 0) {
      this.release()
      if (at < data.length) this.#keep(data.subarray(at))
    }
  }

  /** Drops the incomplete message and returns its bytes to the budget. */
  release(): void {
    this.#budget.left += this.#kept?.length ?? 0
    this.#kept = undefined
    this.#keptLength = 0
  }

  #lengthAt(data: Buffer, at: number): number {
    const length = data.readUInt32BE(at + 1)
    if (length > this.#maxLength)
      throw new GrpcError('RESOURCE_EXHAUSTED', `The message has ${length} bytes; the maximum is ${this.#maxLength}.`)
    if (data[at] !== 0) throw new GrpcError('UNIMPLEMENTED', 'The message is compressed. Send it without compression.')
    return length
  }

  /** Appends a copy: the chunk may be a small part of a large buffer. */
  #keep(chunk: Buffer): void {
    const length = this.#keptLength + chunk.length
    const capacity = this.#kept?.length ?? 0
    if (length > capacity) {
      const added = Math.max(length, 2 * capacity, 64) - capacity
      if (added > this.#budget.left)
        throw new GrpcError('RESOURCE_EXHAUSTED', 'The server is receiving too many large messages. Try again later.')
      this.#budget.left -= added
      const larger = Buffer.allocUnsafe(capacity + added)
      this.#kept?.copy(larger, 0, 0, this.#keptLength)
      this.#kept = larger
    }
    chunk.copy(this.#kept as Buffer, this.#keptLength)
    this.#keptLength = length
  }
}
