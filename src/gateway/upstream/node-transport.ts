import { ClientRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { messageOf } from '../../core/errors.js'
import { forbiddenTrailers } from '../headers/hop-by-hop.js'
import type { UpstreamBody } from './exchange.js'
import { drainBeforeFailing, openSocket } from './open-socket.js'
import type { Origin } from './origin.js'
import { maxHeadSize } from './response-head.js'
import type { Transport, UpstreamRequest } from './upstream-request.js'

/**
 * Sends one request with the client of `node:http`, on a separate connection that is closed afterwards. Used for
 * requests that undici cannot send: those with `Expect: 100-continue` or trailers.
 */
export class NodeTransport implements Transport {
  readonly #upstreamRequest: UpstreamRequest
  readonly #origin: Origin
  readonly #onDone: () => void
  #socket: Socket | undefined
  #request: ClientRequest | undefined
  #response: IncomingMessage | undefined
  #stream: Readable | undefined
  #isConnected = false
  #isFinished = false

  constructor(request: UpstreamRequest, origin: Origin, onDone: () => void) {
    this.#upstreamRequest = request
    this.#origin = origin
    this.#onDone = onDone
    request.connecting(this)
  }

  start(): void {
    this.#socket = openSocket(this.#origin, (error) => {
      if (error !== null) this.#fail(error)
      else if (!this.#isConnected) {
        this.#isConnected = true
        this.#send()
      }
    })
    drainBeforeFailing(this.#socket)
  }

  abort(): void {
    this.#socket?.destroy()
    this.#finish()
  }

  resume(): void {
    this.#response?.resume()
  }

  isUpstreamSlow(): boolean {
    return this.#socket?.writableNeedDrain ?? false
  }

  #send(): void {
    const { exchange } = this.#upstreamRequest
    const { body } = exchange
    const framing = body?.length === undefined ? ['Transfer-Encoding', 'chunked'] : []
    const expectation = body?.message.headers.expect === undefined ? [] : ['Expect', '100-continue']
    try {
      // Not `request` of node:http: the OpenTelemetry instrumentation replaces it with one that does not support lists of headers.
      const request = new ClientRequest({
        createConnection: () => this.#socket as Socket,
        method: exchange.method,
        path: exchange.path,
        headers: [...exchange.headers, ...framing, ...expectation, 'Connection', 'close'],
        maxHeaderSize: maxHeadSize,
        setHost: false,
      })
      this.#request = request
      request.maxHeadersCount = 0
      request
        .on('continue', () => this.#upstreamRequest.information(100, []))
        .on('information', ({ statusCode, rawHeaders }) => {
          if (statusCode !== 100) this.#upstreamRequest.information(statusCode, rawHeaders)
        })
        .on('response', this.#onResponse)
        .on('error', this.#fail)
        .on('close', () => this.#fail(new Error('the upstream closed the connection before the end of the response')))
      this.#upstreamRequest.sending()
      this.#sendBody(request)
    } catch (error) {
      this.#fail(error)
    }
  }

  #sendBody(request: ClientRequest): void {
    const { body } = this.#upstreamRequest.exchange
    if (body === undefined) {
      request.end()
      this.#upstreamRequest.sent()
      return
    }
    this.#stream = body.stream()
    this.#stream
      .on('data', () => this.#upstreamRequest.sending())
      .once('end', () => this.#endBody(request, body))
      .pipe(request, { end: false })
    request.flushHeaders()
  }

  #endBody(request: ClientRequest, { length, message }: UpstreamBody): void {
    try {
      if (length === undefined) request.addTrailers(allowedTrailers(message.rawTrailers))
      request.end()
      this.#upstreamRequest.sent()
    } catch (error) {
      this.#fail(error)
    }
  }

  readonly #onResponse = (response: IncomingMessage): void => {
    this.#response = response
    if (response.httpVersionMajor !== 1) {
      this.#fail(new Error('the response is not HTTP/1.1'))
      return
    }
    this.#upstreamRequest.head(response.statusCode ?? 0, response.rawHeaders)
    response
      .on('data', (chunk: Buffer) => {
        if (!this.#upstreamRequest.data(chunk)) response.pause()
      })
      .once('end', () => {
        if (!response.complete)
          return this.#fail(new Error('the upstream closed the connection before the end of the response'))
        this.#upstreamRequest.end(response.rawTrailers)
        this.abort()
      })
      .on('error', this.#fail)
  }

  readonly #fail = (error: unknown): void => {
    const isBadResponse = error instanceof Error && 'code' in error && String(error.code).startsWith('HPE_')
    const kind = this.#isConnected ? 'BROKEN' : 'REFUSED'
    this.#upstreamRequest.fail(isBadResponse ? 'BAD_RESPONSE' : kind, messageOf(error))
    this.abort()
  }

  #finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#stream?.destroy()
    this.#request?.destroy()
    this.#onDone()
  }
}

export function allowedTrailers(flat: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2)
    if (!forbiddenTrailers.has((flat[i] as string).toLowerCase()))
      pairs.push([flat[i] as string, flat[i + 1] as string])
  return pairs
}
