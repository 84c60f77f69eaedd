import type { IncomingMessage } from 'node:http'
import { notInTrailers } from './hop-by-hop.js'
import { trailerText } from './request-head.js'
import type { UpstreamConnection } from './upstream/connection.js'

/** The rest of a body up to this size is read and dropped after a refusal, so that its connection can be kept. */
const mostToDrop = 65_536

/** The body of a request on its way to an upstream. Nothing of it is kept here: an upstream that cannot take more stops the client. */
export class ClientBody {
  readonly #message: IncomingMessage
  readonly #isChunked: boolean
  #connection: UpstreamConnection | undefined
  #isSent = false

  constructor(message: IncomingMessage) {
    this.#message = message
    this.#isChunked = message.headers['transfer-encoding'] !== undefined
  }

  /** Whether the upstream was told all of it. */
  get isSent(): boolean {
    return this.#isSent
  }

  /** Whether it is not worth reading for nobody. */
  get isLong(): boolean {
    const length = this.#message.headers['content-length']
    return length === undefined || Number(length) > mostToDrop
  }

  sendTo(connection: UpstreamConnection): void {
    this.#connection = connection
    connection.expectEarlyAnswer()
    this.#message.on('data', this.#isChunked ? this.#onChunk : this.#onBytes).once('end', this.#onEnd)
  }

  /** What still comes is read and goes nowhere. */
  drop(): void {
    this.#connection = undefined
  }

  /** What still comes is not read. */
  stop(): void {
    this.#message.off('data', this.#onBytes).off('data', this.#onChunk).pause()
  }

  readonly #onBytes = (bytes: Buffer): void => {
    if (this.#connection?.write(bytes) === false) this.#message.pause()
  }

  readonly #onChunk = (bytes: Buffer): void => {
    const connection = this.#connection
    if (connection === undefined) return
    connection.cork()
    connection.write(`${bytes.length.toString(16)}\r\n`)
    connection.write(bytes)
    if (!connection.write('\r\n')) this.#message.pause()
    connection.uncork()
  }

  readonly #onEnd = (): void => {
    // A request that was cut off ends too, and must not look complete to the upstream.
    if (this.#connection === undefined || !this.#message.complete) return
    if (this.#isChunked) this.#connection.write(`0\r\n${trailerText(this.#message.rawTrailers, notInTrailers)}\r\n`)
    this.#isSent = true
    this.#connection.endRequest()
  }
}

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
