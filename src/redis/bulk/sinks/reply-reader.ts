/** A reply of the server. Errors may be nested in lists. */
export type Reply = string | number | null | ReplyError | readonly Reply[]

/** An error reply with the message of the server. */
export class ReplyError {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

const plus = 0x2b
const minus = 0x2d
const colon = 0x3a
const dollar = 0x24
const star = 0x2a
const cr = 0x0d
const zero = 0x30

interface OpenList {
  left: number
  readonly items: Reply[]
}

/**
 * Parses RESP2 replies from chunks of bytes. Most replies are one short line. Unless `wantsText` is set, only integers and
 * errors are decoded.
 */
export class ReplyReader {
  /** Whether to decode strings and keep list items. Otherwise only integers and errors are decoded. */
  wantsText = true
  readonly #onReply: (reply: Reply) => void
  /** The start of an incomplete reply. */
  #rest: Buffer | undefined
  readonly #lists: OpenList[] = []

  constructor(onReply: (reply: Reply) => void) {
    this.#onReply = onReply
  }

  /** Parses a chunk. Throws if the bytes are not Redis replies. */
  read(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = undefined
    let at = 0
    while (at < bytes.length) {
      const end = this.#parse(bytes, at)
      if (end < 0) {
        this.#rest = Buffer.from(bytes.subarray(at))
        return
      }
      at = end
    }
  }

  /** Parses the element at `at`. Returns its end position, or -1 if it is incomplete. */
  #parse(bytes: Buffer, at: number): number {
    const kind = bytes[at]
    let end = at + 1
    while (end < bytes.length && bytes[end] !== cr) end++
    const next = end + 2
    if (next > bytes.length) return -1
    switch (kind) {
      case plus:
        this.#emit(this.wantsText ? bytes.toString('utf8', at + 1, end) : '')
        return next
      case colon:
        this.#emit(end === at + 2 ? (bytes[at + 1] as number) - zero : Number(bytes.toString('latin1', at + 1, end)))
        return next
      case minus:
        this.#emit(new ReplyError(bytes.toString('utf8', at + 1, end)))
        return next
      case dollar:
        return this.#bulk(bytes, next, Number(bytes.toString('latin1', at + 1, end)))
      case star:
        this.#list(Number(bytes.toString('latin1', at + 1, end)))
        return next
      default:
        throw new Error('the server does not use the Redis protocol')
    }
  }

  #bulk(bytes: Buffer, start: number, size: number): number {
    if (size < 0) {
      this.#emit(null)
      return start
    }
    const end = start + size
    if (end + 2 > bytes.length) return -1
    this.#emit(this.wantsText ? bytes.toString('utf8', start, end) : '')
    return end + 2
  }

  #list(size: number): void {
    if (size > 0) this.#lists.push({ left: size, items: [] })
    else this.#emit(size < 0 ? null : [])
  }

  #emit(reply: Reply): void {
    let whole = reply
    for (let list = this.#lists.at(-1); list !== undefined; list = this.#lists.at(-1)) {
      // Items that are not needed are dropped, so that long lists use no memory.
      if (this.wantsText || errorIn(whole) !== undefined) list.items.push(whole)
      if (--list.left > 0) return
      this.#lists.pop()
      whole = list.items
    }
    this.#onReply(whole)
  }
}

/** Finds the first error at any depth: a single command of a transaction may have failed. */
export function errorIn(reply: Reply): string | undefined {
  if (reply instanceof ReplyError) return reply.message
  if (typeof reply !== 'object' || reply === null) return undefined
  for (const item of reply) {
    const found = errorIn(item)
    if (found !== undefined) return found
  }
  return undefined
}
