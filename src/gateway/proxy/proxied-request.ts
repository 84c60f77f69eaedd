import type { IncomingMessage, ServerResponse } from 'node:http'
import { cutOff, linger } from '../../http/connections/linger.js'
import { type Answer, rawAnswer } from '../../http/connections/raw-answer.js'
import type { Exchange, RouteTimeouts, UpstreamFailure } from '../upstream/exchange.js'
import { allowedTrailers } from '../upstream/node-request.js'
import type { ResponseHead } from '../upstream/response-head.js'
import type { Transfer } from '../upstream/transfer.js'
import type { Admission } from './admission.js'
import { ClientBody, hasBody, isChunked } from './client-body.js'
import type { GatewayParts } from './gateway-parts.js'
import { failureAnswer, internalProblem } from './gateway-problem.js'
import { ProxyContext, type Routed } from './proxy-context.js'

const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** One request from its arrival to its end. Nothing of a body is buffered here: back-pressure works in both directions. */
export class ProxiedRequest implements Exchange {
  readonly method: string
  readonly isUpgrade = false
  readonly body: ClientBody | undefined
  path = ''
  headers: readonly string[] = []
  readonly #parts: GatewayParts
  readonly #visit: ProxyContext
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  readonly #expectsContinue: boolean
  #transfer: Transfer | undefined
  #isContinued = false
  /** True once the client was sent 100 Continue. */
  #mayContinue = false
  #isHeadPending = false
  #isWaitingForClient = false
  #isAnsweredLast = false
  /** The client learns the end of the body from the end of the connection. */
  #endsWithConnection = false

  constructor(parts: GatewayParts, message: IncomingMessage, response: ServerResponse, expectsContinue: boolean) {
    this.#parts = parts
    this.#visit = new ProxyContext(parts, message)
    this.#message = message
    this.#response = response
    this.method = message.method ?? 'GET'
    this.body = hasBody(message) ? new ClientBody(message) : undefined
    this.#expectsContinue = expectsContinue
  }

  clientAddress(): string {
    return this.#visit.clientAddress()
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#visit.open?.route.timeouts
  }

  get isRepeatable(): boolean {
    return this.body === undefined && idempotent.has(this.method)
  }

  get needsNodeClient(): boolean {
    if (this.body === undefined) return false
    return this.#expectsContinue || (isChunked(this.#message) && this.#message.headers.trailer !== undefined)
  }

  start(): void {
    try {
      this.#begin()
    } catch (error) {
      this.#onError(error)
    }
  }

  #begin(): void {
    const routed = this.#visit.findRoute()
    if ('status' in routed) {
      this.#answer(routed)
      return
    }
    const admission = this.#visit.askLimits(routed)
    if (admission instanceof Promise) admission.then((one) => this.#proceed(one, routed)).catch(this.#onError)
    else this.#proceed(admission, routed)
  }

  #proceed(admission: Admission, routed: Routed): void {
    if (admission.kind === 'GONE' || this.#response.destroyed) return
    this.#visit.takeNote(admission, routed)
    if (admission.kind === 'ANSWER') this.#answer(admission.answer)
    else {
      this.path = this.#visit.requestPath(routed)
      this.headers = this.#visit.requestHeaders(routed)
      this.#transfer = routed.pool.request(this)
    }
  }

  /** What nobody foresaw is for whoever runs this, not for whoever asks. */
  readonly #onError = (error: unknown): void => {
    process.emitWarning(error instanceof Error ? error : String(error))
    this.#answer(internalProblem())
  }

  /**
   * Hints are dropped while the client does not read, because they would be buffered without bound. They are also dropped
   * while an earlier response on the connection is pending: `node:http` would write them behind the head of this response.
   */
  onInformation(status: number, headers: readonly string[]): void {
    const response = this.#response
    if (this.#message.httpVersion === '1.0') return
    if (status === 100) this.#continue()
    else if (response.socket === null || response.writableLength >= response.writableHighWaterMark) return
    else if (status === 102) response.writeProcessing()
    else if (status === 103) this.#hint(valuesOf(headers, 'link'))
  }

  /** Waits for its turn on the connection. A final response that is there by then replaces it. */
  #continue(): void {
    if (!this.#expectsContinue || this.#isContinued) return
    this.#isContinued = true
    const write = (): void => {
      if (this.#response.headersSent) return
      this.#mayContinue = true
      this.#response.writeContinue()
    }
    if (this.#response.socket === null) this.#response.once('socket', write)
    else write()
  }

  /** An early hint that Node rejects is not forwarded; it must not cost the client the response. */
  #hint(link: string[]): void {
    if (link.length === 0 || link.some((value) => !isHeaderValue(value))) return
    try {
      this.#response.writeEarlyHints({ link })
    } catch {}
  }

  onHead(head: ResponseHead): void {
    const headers = this.#visit.relayedHeaders(head)
    // A client that waits for 100 Continue and gets something else may or may not send its body.
    if (this.#parts.isDraining() || (this.#expectsContinue && !this.#mayContinue)) headers.push('Connection', 'close')
    // Without the reason phrase of the upstream: nothing depends on it, and node:http throws if it has a control character.
    this.#response.writeHead(head.status, headers)
    this.#endsWithConnection = head.length === undefined && this.#message.httpVersion === '1.0'
    this.#visit.status = head.status
    this.#isHeadPending = true
    // If the body arrived with the head, both are sent at once; if it takes its time, the head is sent now.
    process.nextTick(flushHead, this)
  }

  flushHead(): void {
    if (this.#isHeadPending) this.#response.flushHeaders()
    this.#isHeadPending = false
  }

  onData(chunk: Buffer, isLast: boolean): boolean {
    if (this.#response.destroyed) return true
    this.#visit.bytes += chunk.length
    this.#isHeadPending = false
    if (isLast) this.#response.end(chunk)
    else if (!this.#response.write(chunk)) {
      if (!this.#isWaitingForClient) this.#response.on('drain', () => this.#transfer?.resume())
      this.#isWaitingForClient = true
      return false
    }
    return true
  }

  onEnd(trailers: readonly string[]): void {
    this.#isHeadPending = false
    if (!this.#response.writableEnded) {
      if (trailers.length > 0) this.#response.addTrailers(allowedTrailers(trailers))
      this.#response.end()
    }
    if (this.body === undefined || this.#transfer?.isRequestSent) return
    // The upstream has answered without reading the whole body.
    this.body.stop()
    if (this.#response.writableFinished) linger(this.#message.socket)
    else this.#response.once('finish', () => linger(this.#message.socket))
  }

  onFailure(failure: UpstreamFailure): void {
    const { headersSent, socket } = this.#response
    // Ended regularly, a part of the body would pass for the whole.
    if (!headersSent) this.#answer(failureAnswer(failure))
    else if (this.#endsWithConnection && socket !== null) cutOff(socket)
    else this.#response.destroy()
  }

  onUpgrade(): void {}

  #answer(answer: Answer): void {
    const response = this.#response
    const { socket } = this.#message
    if (response.destroyed || response.headersSent) return
    this.#visit.status = answer.status
    this.#visit.bytes = Buffer.byteLength(answer.body)
    if (this.#isMoreToCome() && response.socket === socket) {
      this.body?.stop()
      this.#isAnsweredLast = true
      socket.write(rawAnswer(answer))
      linger(socket)
    } else {
      this.body?.discard()
      const connection = this.#parts.isDraining() ? { Connection: 'close' } : undefined
      response.writeHead(answer.status, { ...answer.headers, 'Content-Length': this.#visit.bytes, ...connection })
      response.end(answer.body)
    }
  }

  /** Whether the client has a body to send that is not worth waiting for. */
  #isMoreToCome(): boolean {
    if (this.body === undefined || this.#message.complete) return false
    return this.#expectsContinue || this.body.isLong
  }

  /** To be called when the response is closed, complete or not. */
  readonly onClose = (): void => {
    this.#transfer?.cancel()
    this.#visit.end(!this.#response.writableFinished && !this.#isAnsweredLast)
  }
}

const flushHead = (request: ProxiedRequest): void => request.flushHead()

function valuesOf(headers: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < headers.length; i += 2)
    if ((headers[i] as string).toLowerCase() === name) values.push(headers[i + 1] as string)
  return values
}

const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
