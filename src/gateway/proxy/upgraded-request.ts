import { type IncomingMessage, STATUS_CODES, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import { cutOff, linger } from '../../http/connections/linger.js'
import { type Answer, rawAnswer } from '../../http/connections/raw-answer.js'
import type { Exchange, RouteTimeouts, UpstreamFailure } from '../upstream/exchange.js'
import type { ResponseHead } from '../upstream/response-head.js'
import type { Transfer } from '../upstream/transfer.js'
import type { GatewayParts } from './gateway-parts.js'
import { failureAnswer, internalProblem, problemAnswer } from './gateway-problem.js'
import { ProxyContext } from './proxy-context.js'

/** A request to become a WebSocket. Admitted as any other; then two sockets that are passed on to each other. */
export class UpgradedRequest implements Exchange {
  readonly method = 'GET'
  readonly isUpgrade = true
  readonly body = undefined
  readonly isRepeatable = true
  readonly needsNodeClient = false
  path = ''
  headers: readonly string[] = []
  readonly #message: IncomingMessage
  readonly #visit: ProxyContext
  readonly #socket: Duplex
  /** What came behind the request. */
  readonly #first: Buffer
  #transfer: Transfer | undefined

  constructor(parts: GatewayParts, message: IncomingMessage, socket: Duplex, first: Buffer) {
    this.#message = message
    this.#visit = new ProxyContext(parts, message)
    this.#socket = socket
    this.#first = first
    socket.on('error', () => socket.destroy()).once('close', this.#onClose)
  }

  clientAddress(): string {
    return this.#visit.clientAddress()
  }

  get timeouts(): RouteTimeouts | undefined {
    return this.#visit.open?.route.timeouts
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
    if (announcesBody(this.#message)) {
      this.#answer(problemAnswer(400, 'A request to upgrade the connection must not have a body.'))
      return
    }
    const routed = this.#visit.findRoute()
    if ('status' in routed) {
      this.#answer(routed)
      return
    }
    const admission = await this.#visit.askLimits(routed)
    if (admission.kind === 'GONE' || this.#socket.destroyed) return
    this.#visit.takeNote(admission, routed)
    if (admission.kind === 'ANSWER') this.#answer(admission.answer)
    else {
      this.path = this.#visit.requestPath(routed)
      this.headers = this.#visit.requestHeaders(routed)
      this.#transfer = routed.pool.request(this)
    }
  }

  onInformation(): void {}

  /** The upstream declined. `node:http` no longer manages the connection, so the response is written here, as its last. */
  onHead(head: ResponseHead): void {
    const headers = this.#visit.relayedHeaders(head)
    headers.push('Connection', 'close')
    this.#writeHead(head.status, headers)
  }

  onData(chunk: Buffer): boolean {
    this.#visit.bytes += chunk.length
    if (this.#socket.write(chunk)) return true
    this.#socket.once('drain', () => this.#transfer?.resume())
    return false
  }

  onEnd(): void {
    linger(this.#socket)
  }

  onUpgrade(head: ResponseHead, upstream: Duplex): void {
    const client = this.#socket
    const headers = this.#visit.relayedHeaders(head)
    headers.push('Upgrade', 'websocket', 'Connection', 'Upgrade')
    this.#writeHead(head.status, headers)
    upstream.on('error', () => client.destroy()).once('close', () => client.destroy())
    client.once('close', () => upstream.destroy())
    // A WebSocket is never half closed: an upstream that keeps its side open would occupy the connection for ever.
    client.once('end', () => linger(upstream))
    if (client.destroyed) upstream.destroy()
    if (this.#first.length > 0) upstream.write(this.#first)
    client.pipe(upstream)
    upstream.pipe(client)
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#visit.status !== null) cutOff(this.#socket)
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
    this.#visit.status = status
    this.#socket.write(`${text}\r\n`, 'latin1')
  }

  #answer(answer: Answer): void {
    if (this.#socket.destroyed) return
    this.#visit.status = answer.status
    this.#visit.bytes = Buffer.byteLength(answer.body)
    this.#socket.write(rawAnswer(answer))
    linger(this.#socket)
  }

  readonly #onClose = (): void => {
    this.#transfer?.cancel()
    this.#visit.end(this.#visit.status === null)
  }
}

/**
 * `node:http` reads no body of an upgrade request: its bytes would reach the upstream as the start of the tunnel, or be
 * awaited there as a body that never comes.
 */
const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
