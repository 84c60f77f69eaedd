import type { Socket } from 'node:net'
import { type buildConnector, Client } from 'undici'
import { NodeTransport } from './node-transport.js'
import { drainBeforeFailing, openSocket } from './open-socket.js'
import { type Origin, originKey } from './origin.js'
import { maxHeadSize } from './response-head.js'
import { tracedDispatch } from './traced-dispatch.js'
import { UndiciTransport } from './undici-transport.js'
import type { UpstreamRequest } from './upstream-request.js'

/** An idle connection is closed this long before the upstream's `Keep-Alive: timeout=` expires. */
const keepAliveMarginMs = 1_000

/** Checked because llhttp also accepts versions 0.9 and 2.0, and undici does not report the version. */
const responseStart = Buffer.from('HTTP/1.')

interface SlotOwner {
  /** Called when the slot is free again after this request. */
  onRelease(slot: Slot, request: UpstreamRequest): void
}

/**
 * One connection slot of a pool: an undici client that sends one request at a time. The client reconnects when the next
 * request needs it, so a slot outlives its connections.
 */
export class Slot {
  readonly #origin: Origin
  readonly #owner: SlotOwner
  readonly #client: Client
  #upstreamRequest: UpstreamRequest | undefined
  #socket: Socket | undefined
  #uses = 0
  #checkedBytes = responseStart.length
  #drainsBeforeFailing = false
  #settleConnect: ((error: Error | null) => void) | undefined

  constructor(origin: Origin, keepAliveMs: number, owner: SlotOwner) {
    this.#origin = origin
    this.#owner = owner
    this.#client = new Client(originKey(origin), {
      connect: this.#connect,
      pipelining: 1,
      maxHeaderSize: maxHeadSize,
      // Disabled: undici's timers have a resolution of half a second and restart with each byte.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: Math.max(1, keepAliveMs),
      keepAliveMaxTimeout: Math.max(1, keepAliveMs),
      keepAliveTimeoutThreshold: keepAliveMarginMs,
    })
    // Emitted if a handler throws. Without a listener it would crash the process.
    this.#client.on('error' as 'drain', (error: unknown) =>
      process.emitWarning(error instanceof Error ? error : String(error)),
    )
  }

  get request(): UpstreamRequest | undefined {
    return this.#upstreamRequest
  }

  /** True if the next request needs no new connection. */
  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && !this.#socket.readableEnded
  }

  get needsDrain(): boolean {
    return this.#socket?.writableNeedDrain ?? false
  }

  begin(request: UpstreamRequest): void {
    this.#upstreamRequest = request
    if (request.exchange.needsNodeTransport) {
      // A slot has one connection at a time.
      this.#socket?.destroy()
      new NodeTransport(request, this.#origin, () => this.release()).start()
      return
    }
    const transport = new UndiciTransport(request, this)
    const { trace } = request.exchange
    if (trace === undefined) this.#dispatch(transport)
    else trace.run(() => tracedDispatch(trace.fields, () => this.#dispatch(transport)))
  }

  #dispatch(transport: UndiciTransport): void {
    this.#client.dispatch(transport.dispatchOptions(this.#origin.hostname), transport)
  }

  /** Sends the request again, on a new connection, because the old one is closed. */
  retry(request: UpstreamRequest): void {
    // Deferred: undici is still closing the old connection.
    queueMicrotask(() => {
      if (request.isDone) this.release()
      else this.begin(request)
    })
  }

  /** Number of requests assigned to the current connection or, without one, to the previous connection. */
  get uses(): number {
    return this.#uses
  }

  /** Counts a request on the current connection. */
  countUse(hasBody: boolean): void {
    if (hasBody && !this.#drainsBeforeFailing && this.#socket !== undefined) {
      this.#drainsBeforeFailing = true
      drainBeforeFailing(this.#socket)
    }
    this.#checkedBytes = 0
    this.#uses += 1
  }

  /** The connection has become a tunnel. */
  detach(): void {
    this.#socket = undefined
  }

  cancelConnect(): void {
    this.#settleConnect?.(new Error('cancelled'))
  }

  release(): void {
    const request = this.#upstreamRequest
    this.#upstreamRequest = undefined
    if (request !== undefined) this.#owner.onRelease(this, request)
  }

  destroy(): void {
    // Deferred: the caller may be in a callback of this client.
    queueMicrotask(() => void this.#client.destroy())
  }

  /** Fails the request unless its response starts with `HTTP/1.`. */
  #checked(chunk: Buffer | null): Buffer | null {
    if (chunk === null) return null
    for (let i = 0; i < chunk.length && this.#checkedBytes < responseStart.length; i++)
      if (chunk[i] !== responseStart[this.#checkedBytes++]) {
        this.#upstreamRequest?.fail('BAD_RESPONSE', 'the response is not HTTP/1.1')
        return null
      }
    return chunk
  }

  readonly #connect = (_: buildConnector.Options, callback: buildConnector.Callback): void => {
    if (this.#upstreamRequest === undefined || this.#upstreamRequest.isDone) {
      queueMicrotask(() => callback(new Error('cancelled'), null))
      return
    }
    const settle = (error: Error | null): void => {
      if (this.#settleConnect !== settle) return
      this.#settleConnect = undefined
      if (error === null) callback(null, socket)
      else {
        socket.destroy()
        // Without the code: after ERR_TLS_CERT_ALTNAME_INVALID an undici client never connects again.
        callback(new Error(error.message), null)
      }
    }
    this.#settleConnect = settle
    const socket = openSocket(this.#origin, settle)
    const read = socket.read.bind(socket)
    socket.read = (size) => this.#checked(read(size))
    this.#socket = socket
    this.#uses = 0
    this.#drainsBeforeFailing = false
  }
}
