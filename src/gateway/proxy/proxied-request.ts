import type { IncomingMessage, ServerResponse } from 'node:http'
import { cutOff, linger } from '../../http/connections/linger.js'
import { type Answer, rawAnswer } from '../../http/connections/raw-answer.js'
import type { Exchange, RouteTimeouts, UpstreamFailure } from '../upstream/exchange.js'
import { allowedTrailers } from '../upstream/node-transport.js'
import type { ResponseHead } from '../upstream/response-head.js'
import type { UpstreamRequest } from '../upstream/upstream-request.js'
import type { Admission } from './admission.js'
import { ClientBody, hasBody, isChunked } from './client-body.js'
import type { GatewayParts } from './gateway-parts.js'
import { failureAnswer, internalProblem } from './gateway-problem.js'
import { ProxyContext, type RouteMatch } from './proxy-context.js'

const idempotent: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** Proxies one request. Bodies are not buffered: back-pressure works in both directions. */
export class ProxiedRequest implements Exchange {
  readonly method: string
  readonly isUpgrade = false
  readonly body: ClientBody | undefined
  path = ''
  headers: readonly string[] = []
  trace: Exchange['trace']
  readonly #parts: GatewayParts
  readonly #context: ProxyContext
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  readonly #expectsContinue: boolean
  #upstreamRequest: UpstreamRequest | undefined
  #isContinued = false
  /** True once 100 Continue was sent to the client. */
  #isContinueSent = false
  #isHeadPending = false
  #isWaitingForClient = false
  #isFinalAnswer = false
  /** The end of the connection marks the end of the response body. */
  #endsWithConnection = false

  constructor(parts: GatewayParts, message: IncomingMessage, response: ServerResponse, expectsContinue: boolean) {
    this.#parts = parts
    this.#context = new ProxyContext(parts, message)
    this.#message = message
    this.#response = response
    this.method = message.method ?? 'GET'
    this.body = hasBody(message) ? new ClientBody(message) : undefined
    this.#expectsContinue = expectsContinue
  }

  clientAddress(): string {
    return this.#context.clientAddress()
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#context.route?.timeouts
  }

  get isRetryable(): boolean {
    return this.body === undefined && idempotent.has(this.method)
  }

  get needsNodeTransport(): boolean {
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
    const match = this.#context.findRoute()
    if ('status' in match) {
      this.#answer(match)
      return
    }
    const admission = this.#context.checkLimits(match)
    if (admission instanceof Promise) admission.then((settled) => this.#proceed(settled, match)).catch(this.#onError)
    else this.#proceed(admission, match)
  }

  #proceed(admission: Admission, match: RouteMatch): void {
    if (admission.kind === 'GONE' || this.#response.destroyed) return
    this.#context.recordAdmission(admission, match)
    if (admission.kind === 'ANSWER') this.#answer(admission.answer)
    else this.#upstreamRequest = this.#context.forward(this, match)
  }

  /** Reports an unexpected error as a warning of the process. The client receives no details. */
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
    else if (status === 103) this.#hint(headerValues(headers, 'link'))
  }

  /** Sends 100 Continue after all earlier responses on the connection, unless the final response is sent first. */
  #continue(): void {
    if (!this.#expectsContinue || this.#isContinued) return
    this.#isContinued = true
    const write = (): void => {
      if (this.#response.headersSent) return
      this.#isContinueSent = true
      this.#response.writeContinue()
    }
    if (this.#response.socket === null) this.#response.once('socket', write)
    else write()
  }

  /** Drops early hints that Node rejects, so that they do not fail the response. */
  #hint(link: string[]): void {
    if (link.length === 0 || link.some((value) => !isHeaderValue(value))) return
    try {
      this.#response.writeEarlyHints({ link })
    } catch {}
  }

  onHead(head: ResponseHead): void {
    const headers = this.#context.relayedHeaders(head)
    // A client that expects 100 Continue and receives a final response may or may not send its body.
    if (this.#parts.isDraining() || (this.#expectsContinue && !this.#isContinueSent))
      headers.push('Connection', 'close')
    // The upstream's reason phrase is dropped: node:http throws if it contains a control character.
    this.#response.writeHead(head.status, headers)
    this.#endsWithConnection = head.length === undefined && this.#message.httpVersion === '1.0'
    this.#context.status = head.status
    this.#isHeadPending = true
    // A body that arrives in the same packet is sent together with the head. Otherwise the head is sent first.
    process.nextTick(flushHead, this)
  }

  flushHead(): void {
    if (this.#isHeadPending) this.#response.flushHeaders()
    this.#isHeadPending = false
  }

  onData(chunk: Buffer, isLast: boolean): boolean {
    if (this.#response.destroyed) return true
    this.#context.bytes += chunk.length
    this.#isHeadPending = false
    if (isLast) this.#response.end(chunk)
    else if (!this.#response.write(chunk)) {
      if (!this.#isWaitingForClient) this.#response.on('drain', () => this.#upstreamRequest?.resume())
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
    if (this.body === undefined || this.#upstreamRequest?.isRequestSent) return
    // The upstream has responded without reading the whole request body.
    this.body.stop()
    if (this.#response.writableFinished) linger(this.#message.socket)
    else this.#response.once('finish', () => linger(this.#message.socket))
  }

  onFailure(failure: UpstreamFailure): void {
    const { headersSent, socket } = this.#response
    // A regular end would make an incomplete body look complete.
    if (!headersSent) this.#answer(failureAnswer(failure))
    else if (this.#endsWithConnection && socket !== null) cutOff(socket)
    else this.#response.destroy()
  }

  onUpgrade(): void {}

  #answer(answer: Answer): void {
    const response = this.#response
    const { socket } = this.#message
    if (response.destroyed || response.headersSent) return
    this.#context.status = answer.status
    this.#context.bytes = Buffer.byteLength(answer.body)
    if (this.#skipsRestOfBody() && response.socket === socket) {
      this.body?.stop()
      this.#isFinalAnswer = true
      socket.write(rawAnswer(answer))
      linger(socket)
    } else {
      this.body?.discard()
      const connection = this.#parts.isDraining() ? { Connection: 'close' } : undefined
      response.writeHead(answer.status, { ...answer.headers, 'Content-Length': this.#context.bytes, ...connection })
      response.end(answer.body)
    }
  }

  /** True if the rest of the request body is not worth reading. */
  #skipsRestOfBody(): boolean {
    if (this.body === undefined || this.#message.complete) return false
    return this.#expectsContinue || this.body.isLong
  }

  /** Called when the response is closed, complete or not. */
  readonly onClose = (): void => {
    this.#upstreamRequest?.cancel()
    this.#context.finish(!this.#response.writableFinished && !this.#isFinalAnswer)
  }
}

const flushHead = (request: ProxiedRequest): void => request.flushHead()

function headerValues(headers: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < headers.length; i += 2)
    if ((headers[i] as string).toLowerCase() === name) values.push(headers[i + 1] as string)
  return values
}

const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
