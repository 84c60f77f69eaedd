import type { IncomingMessage, ServerResponse } from 'node:http'
import { traceIdOf } from '../http/trace-id.js'
import { type AccessEntry, decisionOf, loggedPath } from './access-log.js'
import { type Admission, admit } from './admission.js'
import { ClientRequest } from './client-request.js'
import type { GatewayParts, OpenRoute } from './gateway-parts.js'
import { type Answer, failureAnswer, internalProblem, noRoute, rawAnswer } from './gateway-problem.js'
import { notInTrailers } from './hop-by-hop.js'
import { linger } from './linger.js'
import { readTarget, type Target } from './objection.js'
import { requestHead, trailerText } from './request-head.js'
import { relayedHeaders } from './response-headers.js'
import type { RouteTimeouts, UpstreamConnection } from './upstream/connection.js'
import type { Exchange, UpstreamFailure } from './upstream/exchange.js'
import type { ResponseHead } from './upstream/response-head.js'

/** The rest of a body up to this size is read and dropped after a refusal, so that its connection can be kept. */
const mostToDrop = 65_536

const repeatable: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])
const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** One request from its arrival to its end. Nothing of a body is kept here: who cannot take more stops who sends. */
export class ProxiedRequest implements Exchange {
  readonly method: string
  readonly wantsUpgrade = false
  readonly #parts: GatewayParts
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  readonly #hasBody: boolean
  readonly #expectsContinue: boolean
  readonly #startedAt = performance.now()
  #request: ClientRequest | undefined
  #open: OpenRoute | undefined
  #limitHeaders = noHeaders
  #head = ''
  #connection: UpstreamConnection | undefined
  #isSent = false
  #mayContinue = false
  #isRepeated = false
  #isHeadPending = false
  #isWaitingForClient = false
  #bytes = 0
  #status: number | null = null
  #isAnsweredLast = false
  #decision: AccessEntry['decision'] = null

  constructor(parts: GatewayParts, message: IncomingMessage, response: ServerResponse, expectsContinue: boolean) {
    const { headers } = message
    this.#parts = parts
    this.#message = message
    this.#response = response
    this.method = message.method ?? 'GET'
    this.#hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
    this.#expectsContinue = expectsContinue
    response.once('close', this.#onClose)
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#open?.route.timeouts
  }

  start(): void {
    try {
      this.#begin()
    } catch (error) {
      this.#onError(error)
    }
  }

  #begin(): void {
    const target = readTarget(this.#message, this.#parts.limits)
    if ('status' in target) {
      this.#answer(target)
      return
    }
    const request = new ClientRequest(this.#message, target, this.#parts.clientIpOf)
    this.#request = request
    const open = this.#parts.findRoute(request)
    this.#open = open
    if (open === undefined) this.#answer(noRoute())
    else this.#askLimits(request, target, open)
  }

  #askLimits(request: ClientRequest, target: Target, open: OpenRoute): void {
    const admission = admit(this.#parts.guard, open.route.limits, request)
    if (admission instanceof Promise) admission.then((one) => this.#proceed(one, target, open)).catch(this.#onError)
    else this.#proceed(admission, target, open)
  }

  #proceed(admission: Admission, target: Target, { route, pool }: OpenRoute): void {
    if (admission.kind === 'GONE' || this.#response.destroyed) return
    this.#decision = decisionOf(admission, route)
    if (admission.kind === 'ANSWER') this.#answer(admission.answer)
    else {
      this.#limitHeaders = admission.headers
      this.#head = requestHead(this.#parts, this.#message, route, target, false)
      pool.request(this)
    }
  }

  /** What nobody foresaw is for whoever runs this, not for whoever asks. */
  readonly #onError = (error: unknown): void => {
    process.emitWarning(error instanceof Error ? error : String(error))
    this.#answer(internalProblem())
  }

  onConnection(connection: UpstreamConnection): void {
    this.#connection = connection
    connection.write(this.#head)
    if (this.#hasBody) this.#upload(connection)
    else {
      this.#isSent = true
      connection.endRequest()
    }
  }

  #upload(connection: UpstreamConnection): void {
    connection.expectEarlyAnswer()
    this.#message.on('data', this.#isChunked ? this.#onChunk : this.#onBytes).once('end', this.#onBodyEnd)
  }

  get #isChunked(): boolean {
    return this.#message.headers['transfer-encoding'] !== undefined
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

  readonly #onBodyEnd = (): void => {
    // A request that was cut off ends too, and must not look complete to the upstream.
    if (this.#connection === undefined || !this.#message.complete) return
    if (this.#isChunked) this.#connection.write(`0\r\n${trailerText(this.#message.rawTrailers, notInTrailers)}\r\n`)
    this.#isSent = true
    this.#connection.endRequest()
  }

  onDrain(): void {
    this.#message.resume()
  }

  onInformation({ status, headers, names }: ResponseHead): void {
    if (status === 100 && this.#expectsContinue && !this.#mayContinue) {
      this.#mayContinue = true
      this.#response.writeContinue()
    } else if (status === 102) this.#response.writeProcessing()
    else if (status === 103) {
      const link = names.flatMap((name, index) => (name === 'link' ? [headers[2 * index + 1] as string] : []))
      if (link.length > 0) this.#hint(link)
    }
  }

  /** Hints are worth no more than that: one that Node does not understand costs nobody the response. */
  #hint(link: string[]): void {
    try {
      this.#response.writeEarlyHints({ link })
    } catch {}
  }

  onHead(head: ResponseHead): void {
    if (head.status === 101) return
    const headers = relayedHeaders(head, (this.#open as OpenRoute).route, this.#limitHeaders)
    // Who waits to be told to send its body, and is told something else, may or may not send it.
    if (this.#parts.isDraining() || (this.#expectsContinue && !this.#mayContinue)) headers.push('Connection', 'close')
    this.#status = head.status
    this.#response.writeHead(head.status, head.reason, headers)
    this.#isHeadPending = true
  }

  onData(chunk: Buffer, isLast: boolean): void {
    if (this.#response.destroyed) return
    this.#bytes += chunk.length
    this.#isHeadPending = false
    if (isLast) this.#response.end(chunk)
    else if (!this.#response.write(chunk)) {
      this.#connection?.pause()
      if (!this.#isWaitingForClient) this.#response.on('drain', this.#onClientDrain)
      this.#isWaitingForClient = true
    }
  }

  readonly #onClientDrain = (): void => this.#connection?.resume()

  /** A client learns what there is to know also if the body takes its time. */
  onPause(): void {
    if (this.#isHeadPending) this.#response.flushHeaders()
    this.#isHeadPending = false
  }

  onEnd(trailers: readonly string[]): void {
    const connection = this.#connection
    this.#connection = undefined
    if (!this.#response.writableEnded) {
      if (trailers.length > 0) this.#response.addTrailers(allowedTrailers(trailers))
      this.#response.end()
    }
    if (this.#isSent) return
    // It was answered before it was told everything, and does not want to know.
    connection?.abandon()
    this.#stopReading()
    this.#response.once('finish', () => linger(this.#message.socket))
  }

  onFailure(failure: UpstreamFailure): void {
    this.#connection = undefined
    if (failure.wasIdle && !this.#isRepeated && !this.#hasBody && repeatable.has(this.method)) {
      this.#isRepeated = true
      this.#open?.pool.requestAnew(this)
    } else if (this.#response.headersSent) {
      // Ended properly, the part that has come would pass for the whole.
      this.#response.destroy()
    } else this.#answer(failureAnswer(failure))
  }

  onUpgrade(): void {}

  #answer(answer: Answer): void {
    const response = this.#response
    const { socket } = this.#message
    if (response.destroyed || response.headersSent) return
    this.#status = answer.status
    this.#bytes = Buffer.byteLength(answer.body)
    if (this.#isMoreToCome() && response.socket === socket) {
      this.#stopReading()
      this.#isAnsweredLast = true
      socket.write(rawAnswer(answer))
      linger(socket)
    } else {
      const connection = this.#parts.isDraining() ? { Connection: 'close' } : noHeaders
      response.writeHead(answer.status, { ...answer.headers, 'Content-Length': this.#bytes, ...connection })
      response.end(answer.body)
    }
  }

  /** Whether the client has a body to send that is not worth waiting for. */
  #isMoreToCome(): boolean {
    if (!this.#hasBody || this.#message.complete) return false
    const length = this.#message.headers['content-length']
    return this.#expectsContinue || length === undefined || Number(length) > mostToDrop
  }

  #stopReading(): void {
    this.#message.off('data', this.#onBytes).off('data', this.#onChunk).pause()
  }

  readonly #onClose = (): void => {
    this.#connection?.abandon()
    this.#connection = undefined
    this.#open?.pool.cancel(this)
    this.#request?.leave()
    this.#parts.log?.({
      time: new Date(performance.timeOrigin + this.#startedAt).toISOString(),
      method: this.method,
      path: loggedPath(this.#message.url ?? ''),
      status: this.#status,
      durationMs: Math.round((performance.now() - this.#startedAt) * 1_000) / 1_000,
      bytes: this.#bytes,
      route: this.#open?.route.id ?? null,
      decision: this.#decision,
      clientIp: this.#request?.clientIp() ?? null,
      traceId: traceIdOf(this.#message.headers) ?? null,
      aborted: !this.#response.writableFinished && !this.#isAnsweredLast,
    })
  }
}

function allowedTrailers(flat: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2)
    if (!notInTrailers.has((flat[i] as string).toLowerCase())) pairs.push([flat[i] as string, flat[i + 1] as string])
  return pairs
}
