import { ChunkDecoder } from './chunk-decoder.js'
import { BadResponse, type Framing, parseResponseHead, parseTrailers, type ResponseHead } from './response-head.js'

/** Who is told what a response says, in order. */
export interface ResponseSink {
  /** A 1xx that is not the response yet. */
  onInformation(head: ResponseHead): void
  onHead(head: ResponseHead): void
  /** `isLast`: the body is known to end with this, so that it may be sent together with its end. */
  onData(chunk: Buffer, isLast: boolean): void
  onEnd(trailers: readonly string[]): void
}

const maxHeadLength = 65_536
const emptyLine = Buffer.from('\r\n\r\n')
const beginning = Buffer.from('HTTP/1.')
const noTrailers: readonly string[] = Object.freeze([])

/**
 * Bytes of an upstream → its response. Written here rather than taken from `node:http`, whose client costs more than
 * everything else that a gateway does for a request. Throws BadResponse at whatever is not plain HTTP/1.1.
 */
export class ResponseParser {
  readonly #sink: ResponseSink
  readonly #chunks: ChunkDecoder
  #method = 'GET'
  #state: 'HEAD' | 'BODY' | 'DONE' = 'DONE'
  #rest: Buffer | undefined
  #framing: Framing = 0
  #left = 0

  constructor(sink: ResponseSink) {
    this.#sink = sink
    this.#chunks = new ChunkDecoder((chunk) => this.#sink.onData(chunk, false))
  }

  /** A response to this method comes next. */
  expect(method: string): void {
    this.#method = method
    this.#state = 'HEAD'
    this.#rest = undefined
  }

  /** The part of the buffer that belongs to nothing that was expected; undefined if all of it was taken. */
  execute(data: Buffer): Buffer | undefined {
    let buffer = data
    if (this.#rest !== undefined) {
      buffer = Buffer.concat([this.#rest, data])
      this.#rest = undefined
    }
    let at = 0
    while (at < buffer.length) {
      if (this.#state === 'DONE') return buffer.subarray(at)
      at = this.#state === 'HEAD' ? this.#head(buffer, at) : this.#body(buffer, at)
    }
    return undefined
  }

  /** The upstream says no more; false if it should have. */
  finish(): boolean {
    if (this.#state === 'BODY' && this.#framing === 'UNTIL_CLOSE') this.#end(noTrailers)
    return this.#state === 'DONE'
  }

  #head(buffer: Buffer, at: number): number {
    const end = buffer.indexOf(emptyLine, at)
    if ((end === -1 ? buffer.length : end) - at > maxHeadLength) throw new BadResponse('its headers are too long')
    if (end === -1) {
      // Who greets in another protocol has nothing more to say, and would be waited for in vain.
      if (!isBegun(buffer, at)) throw new BadResponse('its status line is not HTTP/1.1')
      // A copy: the rest of a large read is not kept for a few bytes.
      this.#rest = Buffer.from(buffer.subarray(at))
      return buffer.length
    }
    const head = parseResponseHead(buffer.toString('latin1', at, end), this.#method)
    if (head.status < 200 && head.status !== 101) {
      this.#sink.onInformation(head)
      return end + 4
    }
    this.#framing = head.framing
    this.#left = typeof head.framing === 'number' ? head.framing : 0
    if (head.framing === 'CHUNKED') this.#chunks.reset()
    // After an upgrade, what follows is no longer HTTP.
    this.#state = head.framing === 0 ? 'DONE' : 'BODY'
    this.#sink.onHead(head)
    if (head.framing === 0 && head.status !== 101) this.#sink.onEnd(noTrailers)
    return end + 4
  }

  #body(buffer: Buffer, at: number): number {
    if (this.#framing === 'CHUNKED') return this.#chunked(buffer, at)
    if (this.#framing === 'UNTIL_CLOSE') {
      this.#sink.onData(at === 0 ? buffer : buffer.subarray(at), false)
      return buffer.length
    }
    const end = Math.min(buffer.length, at + this.#left)
    this.#left -= end - at
    const isLast = this.#left === 0
    this.#sink.onData(at === 0 && end === buffer.length ? buffer : buffer.subarray(at, end), isLast)
    if (isLast) this.#end(noTrailers)
    return end
  }

  #chunked(buffer: Buffer, at: number): number {
    const end = this.#chunks.execute(buffer, at)
    if (this.#chunks.isDone) this.#end(parseTrailers(this.#chunks.trailerText))
    return end
  }

  #end(trailers: readonly string[]): void {
    this.#state = 'DONE'
    this.#sink.onEnd(trailers)
  }
}

function isBegun(buffer: Buffer, at: number): boolean {
  const end = Math.min(buffer.length, at + beginning.length)
  return buffer.compare(beginning, 0, end - at, at, end) === 0
}
