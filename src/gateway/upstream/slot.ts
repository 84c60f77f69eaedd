import type { Socket } from 'node:net'
import { type buildConnector, Client } from 'undici'
import { NodeRequest } from './node-request.js'
import { drainBeforeFailing, openSocket, serverName } from './open-socket.js'
import { type Origin, originKey } from './origin.js'
import { maxHeadSize } from './response-head.js'
import type { Transfer } from './transfer.js'
import { UndiciRequest } from './undici-request.js'

/** An idle connection is given up this long before the upstream's `Keep-Alive: timeout=` runs out. */
const keepAliveMarginMs = 1_000

/** llhttp accepts versions 0.9 and 2.0 too, and undici does not report the version. */
const responseStart = Buffer.from('HTTP/1.')

interface SlotOwner {
  /** The slot is free again after this transfer. */
  onRelease(slot: Slot, transfer: Transfer): void
}

/**
 * The right to one connection, and the undici client that makes it: one request at a time. The client reconnects when the
 * next request needs it, so that a slot outlives its connections.
 */
export class Slot {
  readonly #origin: Origin
  readonly #owner: SlotOwner
  readonly #client: Client
  readonly #serverName: string | undefined
  #transfer: Transfer | undefined
  #socket: Socket | undefined
  #uses = 0
  #checkedBytes = responseStart.length
  #drainsBeforeFailing = false
  #settleConnect: ((error: Error | null) => void) | undefined

  constructor(origin: Origin, keepAliveMs: number, owner: SlotOwner) {
    this.#origin = origin
    this.#owner = owner
    this.#serverName = serverName(origin)
    this.#client = new Client(originKey(origin), {
      connect: this.#connect,
      pipelining: 1,
      maxHeaderSize: maxHeadSize,
      // Its timers are accurate to half a second only, and start again with each byte.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: Math.max(1, keepAliveMs),
      keepAliveMaxTimeout: Math.max(1, keepAliveMs),
      keepAliveTimeoutThreshold: keepAliveMarginMs,
    })
    // Emitted if a handler throws; without a listener it would end the process.
    this.#client.on('error' as 'drain', (error: unknown) =>
      process.emitWarning(error instanceof Error ? error : String(error)),
    )
  }

  get transfer(): Transfer | undefined {
    return this.#transfer
  }

  /** True if the next request needs no new connection. */
  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed && !this.#socket.readableEnded
  }

  get needsDrain(): boolean {
    return this.#socket?.writableNeedDrain ?? false
  }

  begin(transfer: Transfer): void {
    this.#transfer = transfer
    if (transfer.exchange.needsNodeClient) {
      // A slot has one connection at a time.
      this.#socket?.destroy()
      new NodeRequest(transfer, this.#origin, () => this.release()).start()
      return
    }
    const request = new UndiciRequest(transfer, this)
    this.#client.dispatch(request.dispatchOptions(this.#serverName), request)
  }

  /** Sends the request once more. The old connection is gone, so that this one is new. */
  repeat(transfer: Transfer): void {
    // Later: undici is still closing the old connection.
    queueMicrotask(() => {
      if (transfer.isDone) this.release()
      else this.begin(transfer)
    })
  }

  /** The requests that were assigned to the current connection, or to the last one if there is none. */
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
    const transfer = this.#transfer
    this.#transfer = undefined
    if (transfer !== undefined) this.#owner.onRelease(this, transfer)
  }

  destroy(): void {
    // Later: the caller may be in a callback of this client.
    queueMicrotask(() => void this.#client.destroy())
  }

  /** Fails the transfer unless its response starts as it has to. */
  #checked(chunk: Buffer | null): Buffer | null {
    if (chunk === null) return null
    for (let i = 0; i < chunk.length && this.#checkedBytes < responseStart.length; i++)
      if (chunk[i] !== responseStart[this.#checkedBytes++]) {
        this.#transfer?.fail('BAD_RESPONSE', 'its response is not HTTP/1.1')
        return null
      }
    return chunk
  }

  readonly #connect = (_: buildConnector.Options, callback: buildConnector.Callback): void => {
    if (this.#transfer === undefined || this.#transfer.isDone) {
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
