import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { UpstreamBody } from '../upstream/exchange.js'

/** The rest of a body up to this size is read and discarded after a rejection, so that its connection can be kept. */
const mostToDiscard = 65_536

/** The body of a client's request. Nothing of it is buffered beyond one chunk: a slow upstream stops the client. */
export class ClientBody implements UpstreamBody {
  readonly message: IncomingMessage
  readonly length: number | undefined
  #stream: Readable | undefined

  constructor(message: IncomingMessage) {
    this.message = message
    this.length = isChunked(message) ? undefined : Number(message.headers['content-length'])
  }

  /** True if reading the rest only to discard it is not worthwhile. */
  get isLong(): boolean {
    return this.length === undefined || this.length > mostToDiscard
  }

  readonly stream = (): Readable => {
    const { message } = this
    const stream = new Readable({
      highWaterMark: 16_384,
      read: () => void message.resume(),
      destroy: (error, done) => {
        message.off('data', this.#onData).off('end', this.#onEnd)
        done(error)
      },
    })
    this.#stream = stream
    message.on('data', this.#onData).once('end', this.#onEnd)
    return stream
  }

  /** Reads no more from the client. */
  stop(): void {
    this.#stream?.destroy()
    this.message.pause()
  }

  /** Reads the rest and discards it. */
  discard(): void {
    this.#stream?.destroy()
    this.message.resume()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#stream?.push(chunk) === false) this.message.pause()
  }

  readonly #onEnd = (): void => {
    // A request that was cut off ends too, and must not look complete to the upstream.
    if (this.message.complete) this.#stream?.push(null)
  }
}

export const hasBody = (message: IncomingMessage): boolean =>
  isChunked(message) || (message.headers['content-length'] ?? '0') !== '0'

export const isChunked = ({ headers }: IncomingMessage): boolean => headers['transfer-encoding'] !== undefined
