import type { Duplex } from 'node:stream'
import { messageOf } from '../../core/errors.js'
import type { Exchange, UpstreamFailure, UpstreamTimeouts } from './exchange.js'
import { announcesBody, BadResponse, responseHead } from './response-head.js'
import { type UploadLimits, UploadRate } from './upload-rate.js'
import type { Queued } from './waiting-queue.js'

/** The part of a transfer that depends on the HTTP client which carries it. */
export interface Carrier {
  /** Ends the connection. Nothing is reported to the transfer afterwards. */
  abort(): void
  /** Continues after `data` returned false. */
  resume(): void
  /** True while the upstream does not read fast enough. */
  isUpstreamSlow(): boolean
}

/** Interim responses before the final one. More than that is a flood: each is parsed and possibly buffered for the client. */
export const maxInformational = 16

/**
 * An exchange from the queue for a connection to its end. Every callback of the exchange is called from here, guarded: an
 * exception fails the exchange and never reaches the event loop.
 */
export class Transfer implements Queued<Transfer> {
  readonly exchange: Exchange
  queueLinks: Queued<Transfer>['queueLinks']
  /** Set by ClientShares. */
  client: string | undefined
  isParked = false
  /** The request got another connection because its idle connection had closed. */
  isRepeated = false
  readonly #leaveQueue: (transfer: Transfer) => void
  #phase: 'QUEUED' | 'CONNECTING' | 'SENDING' | 'SENT' | 'RECEIVING' | 'DONE' = 'QUEUED'
  #carrier: Carrier | undefined
  #activeAt = performance.now()
  #informational = 0
  #left: number | undefined
  #isRequestSent = false
  #uploadRate: UploadRate | undefined

  constructor(exchange: Exchange, leaveQueue: (transfer: Transfer) => void) {
    this.exchange = exchange
    this.#leaveQueue = leaveQueue
  }

  get isDone(): boolean {
    return this.#phase === 'DONE'
  }

  /** False while part of the request body is missing upstream. */
  get isRequestSent(): boolean {
    return this.#isRequestSent
  }

  /** Gives up. The exchange is not called back any more. */
  cancel(): void {
    if (this.isDone) return
    this.#phase = 'DONE'
    this.#leaveQueue(this)
    this.#carrier?.abort()
  }

  /** Continues after `onData` returned false. */
  resume(): void {
    if (this.isDone) return
    this.#activeAt = performance.now()
    try {
      this.#carrier?.resume()
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
    const restedMs = now - this.#activeAt
    const { timeouts } = this.exchange
    switch (this.#phase) {
      case 'QUEUED':
        if (restedMs > (timeouts?.connectTimeoutMs ?? limits.connectTimeoutMs)) this.fail('BUSY', 'no free connection')
        break
      case 'CONNECTING':
        if (restedMs > (timeouts?.connectTimeoutMs ?? limits.connectTimeoutMs)) this.fail('TIMEOUT', 'no connection')
        break
      case 'SENDING':
      case 'SENT':
        this.#checkRequest(now, restedMs, limits)
        break
      case 'RECEIVING':
        if (limits.idleTimeoutMs > 0 && restedMs > limits.idleTimeoutMs) this.fail('TIMEOUT', 'its body stood still')
    }
  }

  #checkRequest(now: number, restedMs: number, limits: UpstreamTimeouts & UploadLimits): void {
    if (this.#isUploadTooSlow(now, limits)) this.fail('STALLED', 'the client sends its body too slowly')
    else if (restedMs <= (this.exchange.timeouts?.responseTimeoutMs ?? limits.responseTimeoutMs)) return
    else if (this.#isRequestSent || this.#carrier?.isUpstreamSlow()) this.fail('TIMEOUT', 'no response')
    else this.fail('STALLED', 'the client stopped sending')
  }

  #isUploadTooSlow(now: number, limits: UploadLimits): boolean {
    const message = this.exchange.body?.message
    if (message === undefined || this.#isRequestSent || limits.minUploadRate === 0) return false
    const { bytesRead } = message.socket
    this.#uploadRate ??= new UploadRate(now, bytesRead)
    const isUpstreamSlow = message.isPaused() || this.#carrier?.isUpstreamSlow() === true
    return this.#uploadRate.isTooSlow(now, bytesRead, isUpstreamSlow, limits)
  }

  // Called by the carrier.

  connecting(carrier: Carrier): void {
    this.#carrier = carrier
    this.#phase = 'CONNECTING'
    this.#activeAt = performance.now()
  }

  /** The request, or another part of its body, is being written. */
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
      if (status < 100 || status === 101) throw new BadResponse(`its status is ${status}`)
      if (announcesBody(headers)) throw new BadResponse('its informational response has a body')
      if (++this.#informational > maxInformational)
        throw new BadResponse(`it sent more than ${maxInformational} informational responses`)
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
      this.#left = head.length
      this.exchange.onHead(head)
    } catch (error) {
      this.fail('BAD_RESPONSE', messageOf(error))
    }
  }

  /** False: do not read more until `resume`. */
  data(chunk: Buffer): boolean {
    if (this.isDone) return true
    this.#activeAt = performance.now()
    if (this.#left !== undefined) this.#left -= chunk.length
    const isLast = this.#left === 0
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
      if (protocol?.toLowerCase() !== 'websocket') throw new BadResponse('it changed to another protocol')
      this.#phase = 'DONE'
      this.exchange.onUpgrade(head, socket)
    } catch (error) {
      socket.destroy()
      this.#failLate(error)
    }
  }

  /** The phase may be DONE already, but the exchange has not been ended. */
  #failLate(error: unknown): void {
    this.#phase = 'RECEIVING'
    this.fail('BAD_RESPONSE', messageOf(error))
  }
}
