import type { Duplex } from 'node:stream'
import { messageOf } from '../../core/errors.js'
import type { Exchange, UpstreamFailure, UpstreamTimeouts } from './exchange.js'
import { BadResponse, declaresBody, responseHead } from './response-head.js'
import { type UploadLimits, UploadRate } from './upload-rate.js'
import type { Queued } from './waiting-queue.js'

/** The HTTP client that sends an upstream request. */
export interface Transport {
  /** Closes the connection. The transport reports nothing afterwards. */
  abort(): void
  /** Continues after `data` returned false. */
  resume(): void
  /** True while the socket's write buffer is full. */
  isUpstreamSlow(): boolean
}

/** Interim responses per request. Bounded, because each is parsed and may be buffered for the client. */
export const maxInformational = 16

/**
 * The state of an exchange, from the connection queue to its end. Calls every callback of the exchange inside `try`: an
 * exception fails the exchange and never reaches the event loop.
 */
export class UpstreamRequest implements Queued<UpstreamRequest> {
  readonly exchange: Exchange
  queueLinks: Queued<UpstreamRequest>['queueLinks']
  /** Set by ClientShares. */
  client: string | undefined
  isParked = false
  /** True if the request was moved to a new connection, because its idle connection was closed. */
  isRetried = false
  readonly #leaveQueue: (request: UpstreamRequest) => void
  #phase: 'QUEUED' | 'CONNECTING' | 'SENDING' | 'SENT' | 'RECEIVING' | 'DONE' = 'QUEUED'
  #transport: Transport | undefined
  #activeAt = performance.now()
  #informational = 0
  #bytesLeft: number | undefined
  #isRequestSent = false
  #uploadRate: UploadRate | undefined

  constructor(exchange: Exchange, leaveQueue: (request: UpstreamRequest) => void) {
    this.exchange = exchange
    this.#leaveQueue = leaveQueue
  }

  get isDone(): boolean {
    return this.#phase === 'DONE'
  }

  /** False until the whole request body was sent upstream. */
  get isRequestSent(): boolean {
    return this.#isRequestSent
  }

  /** Aborts the request. No callback of the exchange is called afterwards. */
  cancel(): void {
    if (this.isDone) return
    this.#phase = 'DONE'
    this.#leaveQueue(this)
    this.#transport?.abort()
  }

  /** Continues after `onData` returned false. */
  resume(): void {
    if (this.isDone) return
    this.#activeAt = performance.now()
    try {
      this.#transport?.resume()
    } catch (error) {
      this.fail('BROKEN', messageOf(error))
    }
  }

  fail(kind: UpstreamFailure['kind'], detail: string): void {
    if (this.isDone) return
    this.cancel()
    try {
      this.exchange.onFailure({ kind, detail })
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error))
    }
  }

  checkTime(now: number, limits: UpstreamTimeouts & UploadLimits): void {
    const idleMs = now - this.#activeAt
    const { timeouts } = this.exchange
    switch (this.#phase) {
      case 'QUEUED':
        if (idleMs > (timeouts?.connectTimeoutMs ?? limits.connectTimeoutMs))
          this.fail('BUSY', 'no connection became free')
        break
      case 'CONNECTING':
        if (idleMs > (timeouts?.connectTimeoutMs ?? limits.connectTimeoutMs))
          this.fail('TIMEOUT', 'the connection was not established')
        break
      case 'SENDING':
      case 'SENT':
        this.#checkRequest(now, idleMs, limits)
        break
      case 'RECEIVING':
        if (limits.idleTimeoutMs > 0 && idleMs > limits.idleTimeoutMs) this.fail('TIMEOUT', 'the response body stalled')
    }
  }

  #checkRequest(now: number, idleMs: number, limits: UpstreamTimeouts & UploadLimits): void {
    if (this.#isUploadTooSlow(now, limits)) this.fail('STALLED', 'the client sends its body too slowly')
    else if (idleMs <= (this.exchange.timeouts?.responseTimeoutMs ?? limits.responseTimeoutMs)) return
    else if (this.#isRequestSent || this.#transport?.isUpstreamSlow())
      this.fail('TIMEOUT', 'the response head did not arrive')
    else this.fail('STALLED', 'the client stopped sending')
  }

  #isUploadTooSlow(now: number, limits: UploadLimits): boolean {
    const message = this.exchange.body?.message
    if (message === undefined || this.#isRequestSent || limits.minUploadRate === 0) return false
    const { bytesRead } = message.socket
    this.#uploadRate ??= new UploadRate(now, bytesRead)
    const isUpstreamSlow = message.isPaused() || this.#transport?.isUpstreamSlow() === true
    return this.#uploadRate.isTooSlow(now, bytesRead, isUpstreamSlow, limits)
  }

  // Called by the transport.

  connecting(transport: Transport): void {
    this.#transport = transport
    this.#phase = 'CONNECTING'
    this.#activeAt = performance.now()
  }

  /** The request head or a chunk of its body is being written. */
  sending(): void {
    if (this.#phase === 'CONNECTING') this.#phase = 'SENDING'
    this.#activeAt = performance.now()
  }

  sent(): void {
    this.#isRequestSent = true
    if (this.#phase === 'SENDING') this.#phase = 'SENT'
    this.#activeAt = performance.now()
  }

  information(status: number, headers: readonly string[]): void {
    if (this.isDone) return
    try {
      if (status < 100 || status === 101) throw new BadResponse(`the response has status ${status}`)
      if (declaresBody(headers)) throw new BadResponse('an informational response has a body')
      if (++this.#informational > maxInformational)
        throw new BadResponse(`the upstream sent more than ${maxInformational} informational responses`)
      this.exchange.onInformation(status, headers)
    } catch (error) {
      this.fail('BAD_RESPONSE', messageOf(error))
    }
  }

  head(status: number, headers: readonly string[]): void {
    if (this.isDone) return
    try {
      const head = responseHead(status, headers, this.exchange.method)
      this.#phase = 'RECEIVING'
      this.#activeAt = performance.now()
      this.#bytesLeft = head.length
      this.exchange.onHead(head)
    } catch (error) {
      this.fail('BAD_RESPONSE', messageOf(error))
    }
  }

  /** Returns false to pause until `resume`. */
  data(chunk: Buffer): boolean {
    if (this.isDone) return true
    this.#activeAt = performance.now()
    if (this.#bytesLeft !== undefined) this.#bytesLeft -= chunk.length
    const isLast = this.#bytesLeft === 0
    try {
      return this.exchange.onData(chunk, isLast) || isLast
    } catch (error) {
      this.fail('BAD_RESPONSE', messageOf(error))
      return true
    }
  }

  end(trailers: readonly string[]): void {
    if (this.isDone) return
    this.#phase = 'DONE'
    try {
      this.exchange.onEnd(trailers)
    } catch (error) {
      this.#failLate(error)
    }
  }

  upgrade(status: number, headers: readonly string[], socket: Duplex): void {
    if (this.isDone) {
      socket.destroy()
      return
    }
    try {
      const head = responseHead(status, headers, this.exchange.method)
      const protocol = headers[2 * head.names.indexOf('upgrade') + 1]
      if (protocol?.toLowerCase() !== 'websocket') throw new BadResponse('the upstream switched to another protocol')
      this.#phase = 'DONE'
      this.exchange.onUpgrade(head, socket)
    } catch (error) {
      socket.destroy()
      this.#failLate(error)
    }
  }

  /** Fails an exchange whose phase is already DONE, because its last callback threw. */
  #failLate(error: unknown): void {
    this.#phase = 'RECEIVING'
    this.fail('BAD_RESPONSE', messageOf(error))
  }
}
