/** What a server answers. An error inside a list stands there as what it is. */
export type Reply = string | number | null | ReplyError | readonly Reply[]

/** What the server refused, in its own words. */
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
 * Reads replies from the bytes of a connection, however they are cut. By far the most of them are a short line each; of
 * these, and whenever nobody asks for more, only numbers are read, and errors made into text.
 */
export class ReplyReader {
  /** Whether whoever is told wants to see what the replies are, not only the errors among them. */
  wantsText = true
  readonly #onReply: (reply: Reply) => void
  /** The beginning of a reply whose end has not come yet. */
  #rest: Buffer | undefined
  readonly #lists: OpenList[] = []

  constructor(onReply: (reply: Reply) => void) {
    this.#onReply = onReply
  }

  /** Throws if the bytes are no replies: then whoever is at the other end is not a Redis. */
  read(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = undefined
    let at = 0
    while (at < bytes.length) {
      const end = this.#one(bytes, at)
      if (end < 0) {
        this.#rest = Buffer.from(bytes.subarray(at))
        return
      }
      at = end
    }
  }

  /** Reads what begins at `at`; where it ends, or -1 if that is still to come. */
  #one(bytes: Buffer, at: number): number {
    const kind = bytes[at]
    let end = at + 1
    while (end < bytes.length && bytes[end] !== cr) end++
    const next = end + 2
    if (next > bytes.length) return -1
    switch (kind) {
      case plus:
        this.#tell(this.wantsText ? bytes.toString('utf8', at + 1, end) : '')
        return next
      case colon:
        this.#tell(end === at + 2 ? (bytes[at + 1] as number) - zero : Number(bytes.toString('latin1', at + 1, end)))
        return next
      case minus:
        this.#tell(new ReplyError(bytes.toString('utf8', at + 1, end)))
        return next
      case dollar:
        return this.#bulk(bytes, next, Number(bytes.toString('latin1', at + 1, end)))
      case star:
        this.#list(Number(bytes.toString('latin1', at + 1, end)))
        return next
      default:
        throw new Error('what answers there does not speak the protocol of Redis')
    }
  }

  #bulk(bytes: Buffer, start: number, size: number): number {
    if (size < 0) {
      this.#tell(null)
      return start
    }
    const end = start + size
    if (end + 2 > bytes.length) return -1
    this.#tell(this.wantsText ? bytes.toString('utf8', start, end) : '')
    return end + 2
  }

  #list(size: number): void {
    if (size > 0) this.#lists.push({ left: size, items: [] })
    else this.#tell(size < 0 ? null : [])
  }

  #tell(reply: Reply): void {
    let whole = reply
    for (let list = this.#lists.at(-1); list !== undefined; list = this.#lists.at(-1)) {
      // What nobody looks at is not kept, however long the list.
      if (this.wantsText || errorIn(whole) !== undefined) list.items.push(whole)
      if (--list.left > 0) return
      this.#lists.pop()
      whole = list.items
    }
    this.#onReply(whole)
  }
}

/** The first error in a reply, at whatever depth: of a transaction, one of its commands may have failed. */
export function errorIn(reply: Reply): string | undefined {
  if (reply instanceof ReplyError) return reply.message
  if (typeof reply !== 'object' || reply === null) return undefined
  for (const item of reply) {
    const found = errorIn(item)
    if (found !== undefined) return found
  }
  return undefined
}
