import type { IncomingMessage, ServerResponse } from 'node:http'
import { linger } from '../http/linger.js'
import { type Answer, rawAnswer } from '../http/raw-answer.js'
import type { Admission } from './admission.js'
import { ClientBody, hasBody } from './client-body.js'
import type { GatewayParts } from './gateway-parts.js'
import { failureAnswer, internalProblem } from './gateway-problem.js'
import { notInTrailers } from './hop-by-hop.js'
import type { RouteTimeouts, UpstreamConnection } from './upstream/connection.js'
import type { Exchange, UpstreamFailure } from './upstream/exchange.js'
import type { ResponseHead } from './upstream/response-head.js'
import { type Routed, Visit } from './visit.js'

const repeatable: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE'])

/** One request from its arrival to its end. Nothing of a body is kept here: who cannot take more stops who sends. */
export class ProxiedRequest implements Exchange {
  readonly method: string
  readonly wantsUpgrade = false
  readonly #parts: GatewayParts
  readonly #visit: Visit
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  readonly #body: ClientBody | undefined
  readonly #expectsContinue: boolean
  #head = ''
  #connection: UpstreamConnection | undefined
  #mayContinue = false
  #isRepeated = false
  #isHeadPending = false
  #isWaitingForClient = false
  #isAnsweredLast = false

  constructor(parts: GatewayParts, message: IncomingMessage, response: ServerResponse, expectsContinue: boolean) {
    this.#parts = parts
    this.#visit = new Visit(parts, message)
    this.#message = message
    this.#response = response
    this.method = message.method ?? 'GET'
    this.#body = hasBody(message) ? new ClientBody(message) : undefined
    this.#expectsContinue = expectsContinue
    response.once('close', this.#onClose)
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#visit.open?.route.timeouts
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
      this.#head = this.#visit.requestHead(routed, false)
      routed.pool.request(this)
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
    if (this.#body === undefined) connection.endRequest()
    else this.#body.sendTo(connection)
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
    const headers = this.#visit.relayedHeaders(head)
    // Who waits to be told to send its body, and is told something else, may or may not send it.
    if (this.#parts.isDraining() || (this.#expectsContinue && !this.#mayContinue)) headers.push('Connection', 'close')
    this.#visit.status = head.status
    // Without the reason phrase of the upstream: nothing depends on it, and node:http throws if it has a control character.
    this.#response.writeHead(head.status, headers)
    this.#isHeadPending = true
  }

  onData(chunk: Buffer, isLast: boolean): void {
    if (this.#response.destroyed) return
    this.#visit.bytes += chunk.length
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
    const connection = this.#leaveConnection()
    if (!this.#response.writableEnded) {
      if (trailers.length > 0) this.#response.addTrailers(allowedTrailers(trailers))
      this.#response.end()
    }
    if (this.#body === undefined || this.#body.isSent) return
    // It was answered before it was told everything, and does not want to know.
    connection?.abandon()
    this.#body.stop()
    this.#response.once('finish', () => linger(this.#message.socket))
  }

  onFailure(failure: UpstreamFailure): void {
    this.#leaveConnection()
    if (failure.wasIdle && !this.#isRepeated && this.#body === undefined && repeatable.has(this.method)) {
      this.#isRepeated = true
      this.#visit.open?.pool.requestAnew(this)
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
    this.#visit.status = answer.status
    this.#visit.bytes = Buffer.byteLength(answer.body)
    if (this.#isMoreToCome() && response.socket === socket) {
      this.#body?.stop()
      this.#isAnsweredLast = true
      socket.write(rawAnswer(answer))
      linger(socket)
    } else {
      const connection = this.#parts.isDraining() ? { Connection: 'close' } : undefined
      response.writeHead(answer.status, { ...answer.headers, 'Content-Length': this.#visit.bytes, ...connection })
      response.end(answer.body)
    }
  }

  /** Whether the client has a body to send that is not worth waiting for. */
  #isMoreToCome(): boolean {
    if (this.#body === undefined || this.#message.complete) return false
    return this.#expectsContinue || this.#body.isLong
  }

  #leaveConnection(): UpstreamConnection | undefined {
    const connection = this.#connection
    this.#connection = undefined
    this.#body?.drop()
    return connection
  }

  readonly #onClose = (): void => {
    this.#leaveConnection()?.abandon()
    this.#visit.open?.pool.cancel(this)
    this.#visit.end(!this.#response.writableFinished && !this.#isAnsweredLast)
  }
}

function allowedTrailers(flat: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2)
    if (!notInTrailers.has((flat[i] as string).toLowerCase())) pairs.push([flat[i] as string, flat[i + 1] as string])
  return pairs
}
