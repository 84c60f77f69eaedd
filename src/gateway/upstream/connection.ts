import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { messageOf } from '../../core/errors.js'
import type { Exchange, UpstreamFailure } from './exchange.js'
import type { Origin } from './origin.js'
import { readBeforeFailing } from './read-before-failing.js'
import type { ResponseHead } from './response-head.js'
import { ResponseParser } from './response-parser.js'

export interface UpstreamTimeouts {
  readonly connectTimeoutMs: number
  /** Until the response begins, from the last byte of the request. */
  readonly responseTimeoutMs: number
  /** How long a body may stand still, in either direction; 0 for ever. */
  readonly idleTimeoutMs: number
  /** How long a connection without a request is kept. */
  readonly keepAliveMs: number
}

/** What one route wants otherwise. */
export type RouteTimeouts = Partial<Pick<UpstreamTimeouts, 'connectTimeoutMs' | 'responseTimeoutMs'>>

interface Owner {
  /** It may be used again. */
  onIdle(connection: UpstreamConnection): void
  onGone(connection: UpstreamConnection): void
}

const nothing = Buffer.alloc(0)

/** One socket to an upstream: one exchange at a time, and time-outs that are looked at now and then instead of one timer each. */
export class UpstreamConnection {
  readonly #owner: Owner
  readonly #socket: Socket
  readonly #parser = new ResponseParser(this)
  #exchange: Exchange | undefined
  #isConnected = false
  #exchanges = 0
  #activeAt = 0
  #head: ResponseHead | undefined
  #isAnswered = false
  #isRequestSent = false
  #isResponseOver = false
  #readsBeforeFailing = false

  constructor(origin: Origin, owner: Owner) {
    this.#owner = owner
    this.#socket = openSocket(origin, () => {
      this.#isConnected = true
      this.#activeAt = performance.now()
    })
    this.#socket
      .on('data', this.#onData)
      .on('drain', this.#onDrain)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
  }

  get isUsable(): boolean {
    return !this.#socket.destroyed && this.#socket.writable && !this.#socket.readableEnded
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange
    this.#exchanges += 1
    this.#head = undefined
    this.#isAnswered = false
    this.#isRequestSent = false
    this.#isResponseOver = false
    this.#activeAt = performance.now()
    this.#parser.expect(exchange.method)
    exchange.onConnection(this)
  }

  /** False asks to wait for `onDrain`. */
  write(data: string | Buffer): boolean {
    this.#activeAt = performance.now()
    return typeof data === 'string' ? this.#socket.write(data, 'latin1') : this.#socket.write(data)
  }

  /** Before a body is written: the upstream may answer, and close, without having read it. */
  expectEarlyAnswer(): void {
    if (!this.#readsBeforeFailing) readBeforeFailing(this.#socket)
    this.#readsBeforeFailing = true
  }

  /** Several writes that travel together. */
  cork(): void {
    this.#socket.cork()
  }

  uncork(): void {
    this.#socket.uncork()
  }

  /** The whole request is written. */
  endRequest(): void {
    this.#isRequestSent = true
    if (this.#isResponseOver) this.#settle(true)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#activeAt = performance.now()
    this.#socket.resume()
  }

  /** Gives up the exchange, which hears no more, and the connection. */
  abandon(): void {
    this.#exchange = undefined
    this.#leave()
    this.#socket.destroy()
  }

  checkTime(now: number, limits: UpstreamTimeouts): void {
    const restedMs = now - this.#activeAt
    if (this.#exchange === undefined) {
      if (restedMs > limits.keepAliveMs) this.abandon()
      return
    }
    const { connectTimeoutMs, responseTimeoutMs } = { ...limits, ...this.#exchange.timeouts }
    if (!this.#isConnected) {
      if (restedMs > connectTimeoutMs) this.#fail('TIMEOUT', 'it could not be connected in time')
    } else if (this.#head === undefined) {
      if (restedMs <= responseTimeoutMs) return
      const isClientAtFault = !this.#isRequestSent && !this.#socket.writableNeedDrain
      this.#fail(isClientAtFault ? 'STALLED' : 'TIMEOUT', 'it did not answer in time')
    } else if (limits.idleTimeoutMs > 0 && restedMs > limits.idleTimeoutMs)
      this.#fail('TIMEOUT', 'its body stood still')
  }

  // What the parser says goes to whoever has the exchange; if it was given up meanwhile, to nobody.

  onInformation(head: ResponseHead): void {
    this.#exchange?.onInformation(head)
  }

  onHead(head: ResponseHead): void {
    this.#head = head
    this.#exchange?.onHead(head)
  }

  onData(chunk: Buffer, isLast: boolean): void {
    this.#exchange?.onData(chunk, isLast)
  }

  onEnd(trailers: readonly string[]): void {
    this.#isResponseOver = true
    this.#exchange?.onEnd(trailers)
  }

  readonly #onData = (data: Buffer): void => {
    this.#activeAt = performance.now()
    if (this.#exchange === undefined) {
      this.abandon()
      return
    }
    this.#isAnswered = true
    try {
      this.#take(this.#parser.execute(data))
    } catch (error) {
      this.#fail('BAD_RESPONSE', messageOf(error))
    }
  }

  /** `rest` is what came behind the response. */
  #take(rest: Buffer | undefined): void {
    if (this.#head?.status === 101) this.#upgrade(rest ?? nothing)
    // Bytes that nobody asked for would be taken for the next response.
    else if (this.#isResponseOver && this.#isRequestSent) this.#settle(rest === undefined)
    else if (rest !== undefined) this.abandon()
    else this.#exchange?.onPause()
  }

  readonly #onDrain = (): void => {
    this.#activeAt = performance.now()
    this.#exchange?.onDrain()
  }

  readonly #onEnd = (): void => {
    if (this.#exchange === undefined) this.abandon()
    else if (this.#parser.finish()) this.#settle(false)
    else this.#fail('BROKEN', 'it closed the connection too early')
  }

  readonly #onError = (error: Error): void => {
    const detail = 'code' in error && typeof error.code === 'string' ? error.code : error.message
    this.#fail(this.#isConnected ? 'BROKEN' : 'REFUSED', detail)
  }

  readonly #onClose = (): void => {
    if (this.#exchange === undefined) this.#leave()
    else this.#fail('BROKEN', 'it closed the connection too early')
  }

  #upgrade(first: Buffer): void {
    const exchange = this.#exchange
    if (exchange === undefined || !exchange.wantsUpgrade) {
      this.#fail('BAD_RESPONSE', 'it changed the protocol without being asked')
      return
    }
    this.#exchange = undefined
    this.#leave()
    this.#socket
      .off('data', this.#onData)
      .off('drain', this.#onDrain)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose)
    this.#socket.pause()
    exchange.onUpgrade(this.#socket, first)
  }

  #settle(isClean: boolean): void {
    const wantedUpgrade = this.#exchange?.wantsUpgrade ?? true
    this.#exchange = undefined
    if (!isClean || wantedUpgrade || !this.#head?.isKeptAlive || !this.isUsable) this.abandon()
    else {
      if (this.#socket.isPaused()) this.#socket.resume()
      this.#owner.onIdle(this)
    }
  }

  #fail(kind: UpstreamFailure['kind'], detail: string): void {
    const exchange = this.#exchange
    const wasIdle = kind === 'BROKEN' && this.#exchanges > 1 && !this.#isAnswered
    this.abandon()
    exchange?.onFailure({ kind, detail, wasIdle })
  }

  #leave(): void {
    this.#owner.onGone(this)
  }
}

function openSocket({ isSecure, hostname: host, port }: Origin, onConnected: () => void): Socket {
  if (!isSecure) {
    const socket = connect({ host, port, noDelay: true, keepAlive: true })
    return socket.once('connect', onConnected)
  }
  // An address is no name that a certificate could be asked for.
  const name = isIP(host) === 0 ? { servername: host } : {}
  const socket = connectSecurely({ host, port, ALPNProtocols: ['http/1.1'], ...name })
  socket.setNoDelay(true)
  return socket.once('secureConnect', onConnected)
}
