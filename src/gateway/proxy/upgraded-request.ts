import { type IncomingMessage, STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import { cutOff, linger } from '../../http/connections/linger.js'
import { type Answer, rawAnswer } from '../../http/connections/raw-answer.js'
import type { Exchange, RouteTimeouts, UpstreamFailure } from '../upstream/exchange.js'
import type { ResponseHead } from '../upstream/response-head.js'
import type { UpstreamRequest } from '../upstream/upstream-request.js'
import type { GatewayParts } from './gateway-parts.js'
import { failureAnswer, internalProblem, problemAnswer } from './gateway-problem.js'
import { ProxyContext } from './proxy-context.js'

/** Proxies a WebSocket upgrade. It is limited like any other request; then both sockets are piped into each other. */
export class UpgradedRequest implements Exchange {
  readonly method = 'GET'
  readonly isUpgrade = true
  readonly body = undefined
  readonly isRetryable = true
  readonly needsNodeTransport = false
  path = ''
  headers: readonly string[] = []
  trace: Exchange['trace']
  readonly #message: IncomingMessage
  readonly #context: ProxyContext
  readonly #socket: Duplex
  /** Bytes that were received after the request head. */
  readonly #first: Buffer
  #upstreamRequest: UpstreamRequest | undefined

  constructor(parts: GatewayParts, message: IncomingMessage, socket: Duplex, first: Buffer) {
    this.#message = message
    this.#context = new ProxyContext(parts, message)
    this.#socket = socket
    this.#first = first
    socket.on('error', () => socket.destroy()).once('close', this.#onClose)
  }

  clientAddress(): string {
    return this.#context.clientAddress()
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#context.route?.timeouts
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
    if (declaresBody(this.#message)) {
      this.#answer(
        problemAnswer(400, 'An upgrade request must not have a body. Remove Content-Length and Transfer-Encoding.'),
      )
      return
    }
    const match = this.#context.findRoute()
    if ('status' in match) {
      this.#answer(match)
      return
    }
    const admission = await this.#context.checkLimits(match)
    if (admission.kind === 'GONE' || this.#socket.destroyed) return
    this.#context.recordAdmission(admission, match)
    if (admission.kind === 'ANSWER') this.#answer(admission.answer)
    else this.#upstreamRequest = this.#context.forward(this, match)
  }

  onInformation(): void {}

  /** The upstream declined. `node:http` has released the socket, so the response is written here, and the connection closed. */
  onHead(head: ResponseHead): void {
    const headers = this.#context.relayedHeaders(head)
    headers.push('Connection', 'close')
    this.#writeHead(head.status, headers)
  }

  onData(chunk: Buffer): boolean {
    this.#context.bytes += chunk.length
    if (this.#socket.write(chunk)) return true
    this.#socket.once('drain', () => this.#upstreamRequest?.resume())
    return false
  }

  onEnd(): void {
    linger(this.#socket)
  }

  onUpgrade(head: ResponseHead, upstream: Duplex): void {
    const client = this.#socket
    const headers = this.#context.relayedHeaders(head)
    headers.push('Upgrade', 'websocket', 'Connection', 'Upgrade')
    this.#writeHead(head.status, headers)
    upstream.on('error', () => client.destroy()).once('close', () => client.destroy())
    client.once('close', () => upstream.destroy())
    // A WebSocket is never half closed. An upstream that keeps its side open would occupy the connection forever.
    client.once('end', () => linger(upstream))
    if (client.destroyed) upstream.destroy()
    if (this.#first.length > 0) upstream.write(this.#first)
    client.pipe(upstream)
    upstream.pipe(client)
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#context.status !== null) cutOff(this.#socket)
    else this.#answer(failureAnswer(failure))
  }

  #writeHead(status: number, headers: readonly string[]): void {
    let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
    for (let i = 0; i < headers.length; i += 2) {
      const [name, value] = [headers[i] as string, headers[i + 1] as string]
      validateHeaderName(name)
      validateHeaderValue(name, value)
      text += `${name}: ${value}\r\n`
    }
    this.#context.status = status
    this.#socket.write(`${text}\r\n`, 'latin1')
  }

  #answer(answer: Answer): void {
    if (this.#socket.destroyed) return
    this.#context.status = answer.status
    this.#context.bytes = Buffer.byteLength(answer.body)
    this.#socket.write(rawAnswer(answer))
    linger(this.#socket)
  }

  readonly #onClose = (): void => {
    this.#upstreamRequest?.cancel()
    this.#context.finish(this.#context.status === null)
  }
}

/**
 * `node:http` does not parse the body of an upgrade request. Its bytes would become the start of the tunnel, or the upstream
 * would wait for a body that is never sent.
 */
const declaresBody = ({ headers }: IncomingMessage): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
