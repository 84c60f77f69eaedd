import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { UpstreamBody } from '../upstream/exchange.js'

/** After a rejection, the rest of a body up to this size is read and discarded, so that the connection can be reused. */
const maxDiscardedBytes = 65_536

/** The body of a client request. At most one chunk is buffered: a slow upstream pauses the client. */
export class ClientBody implements UpstreamBody {
  readonly message: IncomingMessage
  readonly length: number | undefined
  #stream: Readable | undefined

  constructor(message: IncomingMessage) {
    this.message = message
    this.length = isChunked(message) ? undefined : Number(message.headers['content-length'])
  }

  /** True if the rest is too long to be read only to be discarded. */
  get isLong(): boolean {
    return this.length === undefined || this.length > maxDiscardedBytes
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

  /** Stops reading from the client. */
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
    // An aborted request ends too. It must not look complete to the upstream.
    if (this.message.complete) this.#stream?.push(null)
  }
}

export const hasBody = (message: IncomingMessage): boolean =>
  isChunked(message) || (message.headers['content-length'] ?? '0') !== '0'

export const isChunked = ({ headers }: IncomingMessage): boolean => headers['transfer-encoding'] !== undefined
