import { type IncomingMessage, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import { traceIdOf } from '../http/trace-id.js'
import { type AccessEntry, decisionOf, loggedPath } from './access-log.js'
import { admit } from './admission.js'
import { ClientRequest } from './client-request.js'
import type { GatewayParts, OpenRoute } from './gateway-parts.js'
import { type Answer, failureAnswer, internalProblem, noRoute, rawAnswer } from './gateway-problem.js'
import { linger } from './linger.js'
import { readTarget, type Target } from './objection.js'
import { requestHead } from './request-head.js'
import { relayedHeaders } from './response-headers.js'
import type { RouteTimeouts, UpstreamConnection } from './upstream/connection.js'
import type { Exchange, UpstreamFailure } from './upstream/exchange.js'
import type { ResponseHead } from './upstream/response-head.js'

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** A request to become a WebSocket. Admitted as any other; then two sockets that are passed on to each other. */
export class UpgradedRequest implements Exchange {
  readonly method = 'GET'
  readonly wantsUpgrade = true
  readonly #parts: GatewayParts
  readonly #message: IncomingMessage
  readonly #socket: Duplex
  /** What came behind the request. */
  readonly #first: Buffer
  readonly #startedAt = performance.now()
  #request: ClientRequest | undefined
  #open: OpenRoute | undefined
  #head = ''
  #limitHeaders = noHeaders
  #connection: UpstreamConnection | undefined
  #isRepeated = false
  #bytes = 0
  #status: number | null = null
  #decision: AccessEntry['decision'] = null

  constructor(parts: GatewayParts, message: IncomingMessage, socket: Duplex, first: Buffer) {
    this.#parts = parts
    this.#message = message
    this.#socket = socket
    this.#first = first
    socket.on('error', () => socket.destroy()).once('close', this.#onClose)
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#open?.route.timeouts
  }

  async start(): Promise<void> {
    try {
      await this.#begin()
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error))
      this.#answer(internalProblem())
    }
  }

  async #begin(): Promise<void> {
    const target = readTarget(this.#message, this.#parts.limits)
    if ('status' in target) {
      this.#answer(target)
      return
    }
    this.#request = new ClientRequest(this.#message, target, this.#parts.clientIpOf)
    this.#open = this.#parts.findRoute(this.#request)
    if (this.#open === undefined) this.#answer(noRoute())
    else await this.#askLimits(this.#request, target, this.#open)
  }

  async #askLimits(request: ClientRequest, target: Target, { route, pool }: OpenRoute): Promise<void> {
    const admission = await admit(this.#parts.guard, route.limits, request)
    if (admission.kind === 'GONE' || this.#socket.destroyed) return
    this.#decision = decisionOf(admission, route)
    if (admission.kind === 'ANSWER') this.#answer(admission.answer)
    else {
      this.#limitHeaders = admission.headers
      this.#head = requestHead(this.#parts, this.#message, route, target, true)
      pool.request(this)
    }
  }

  onConnection(connection: UpstreamConnection): void {
    this.#connection = connection
    connection.write(this.#head)
    connection.endRequest()
  }

  onDrain(): void {}
  onPause(): void {}
  onInformation(): void {}

  /** `node:http` has let go of the connection, so that the response is written here, as the last one on it. */
  onHead(head: ResponseHead): void {
    const headers = relayedHeaders(head, (this.#open as OpenRoute).route, this.#limitHeaders)
    if (head.status === 101) headers.push('Upgrade', 'websocket', 'Connection', 'Upgrade')
    else headers.push('Connection', 'close')
    let text = `HTTP/1.1 ${head.status} ${head.reason}\r\n`
    for (let i = 0; i < headers.length; i += 2) {
      const [name, value] = [headers[i] as string, headers[i + 1] as string]
      validateHeaderName(name)
      validateHeaderValue(name, value)
      text += `${name}: ${value}\r\n`
    }
    this.#status = head.status
    this.#socket.write(`${text}\r\n`, 'latin1')
  }

  onData(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#socket.write(chunk)) return
    this.#connection?.pause()
    this.#socket.once('drain', () => this.#connection?.resume())
  }

  onEnd(): void {
    this.#connection = undefined
    linger(this.#socket)
  }

  onUpgrade(upstream: Duplex, first: Buffer): void {
    this.#connection = undefined
    const client = this.#socket
    upstream.on('error', () => client.destroy()).once('close', () => client.destroy())
    client.once('close', () => upstream.destroy())
    if (client.destroyed) upstream.destroy()
    if (first.length > 0) client.write(first)
    if (this.#first.length > 0) upstream.write(this.#first)
    client.pipe(upstream)
    upstream.pipe(client)
  }

  onFailure(failure: UpstreamFailure): void {
    this.#connection = undefined
    if (failure.wasIdle && !this.#isRepeated) {
      this.#isRepeated = true
      this.#open?.pool.requestAnew(this)
    } else if (this.#status !== null) this.#socket.destroy()
    else this.#answer(failureAnswer(failure))
  }

  #answer(answer: Answer): void {
    if (this.#socket.destroyed) return
    this.#status = answer.status
    this.#bytes = Buffer.byteLength(answer.body)
    this.#socket.write(rawAnswer(answer))
    linger(this.#socket)
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
      aborted: this.#status === null,
    })
  }
}
