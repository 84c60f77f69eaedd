import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { messageOf } from '../../core/errors.js'
import type { UpstreamFailure } from './exchange.js'
import { announcesBody, decodedHeaders, hasNoBody } from './response-head.js'
import type { Slot } from './slot.js'
import type { Carrier, Transfer } from './transfer.js'

type Abort = (error?: Error) => void

/** One attempt to send a request with undici, as the handler of `Client.dispatch`. Reports to a Transfer, releases its Slot. */
export class UndiciRequest implements Carrier, Dispatcher.DispatchHandler {
  readonly #transfer: Transfer
  readonly #slot: Slot
  #abort: Abort | undefined
  #resume: (() => void) | undefined
  #isAborted = false

  constructor(transfer: Transfer, slot: Slot) {
    this.#transfer = transfer
    this.#slot = slot
    transfer.connecting(this)
  }

  dispatchOptions(servername: string | undefined): Dispatcher.DispatchOptions & { servername: string | undefined } {
    const { method, path, headers, body, isUpgrade } = this.#transfer.exchange
    return {
      method,
      path,
      headers: headers as string[],
      body: body?.stream() ?? null,
      upgrade: isUpgrade ? 'websocket' : null,
      // Otherwise undici derives it from the Host header, which may be the client's.
      servername,
    }
  }

  abort(): void {
    this.#isAborted = true
    if (this.#abort === undefined) this.#slot.cancelConnect()
    else this.#abort()
  }

  resume(): void {
    this.#resume?.()
  }

  isUpstreamSlow(): boolean {
    return this.#slot.needsDrain
  }

  // Called by undici.

  onConnect(abort: Abort): void {
    // undici calls this again before it sends a request a second time, which is decided here and nowhere else.
    if (this.#isAborted || this.#abort !== undefined) {
      abort()
      return
    }
    this.#abort = abort
    this.#slot.countUse(this.#transfer.exchange.body !== undefined)
    this.#transfer.sending()
  }

  onBodySent(): void {
    this.#transfer.sending()
  }

  onRequestSent(): void {
    this.#transfer.sent()
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    const headers = decodedHeaders(raw)
    if (status < 200) {
      this.#transfer.information(status, headers)
      return true
    }
    this.#resume = resume
    this.#transfer.head(status, headers)
    // undici misses the body that a 304 may announce and never has (RFC 9110, 8.6), and fails the request.
    if (hasNoBody(status) && this.#transfer.exchange.method !== 'HEAD' && announcesBody(headers)) {
      this.#transfer.end([])
      this.abort()
    }
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#transfer.data(chunk)
  }

  onComplete(trailers: unknown): void {
    // Typed as strings, but these are buffers.
    this.#transfer.end(decodedHeaders((trailers ?? []) as Buffer[]))
    this.#slot.release()
  }

  onUpgrade(status: number, raw: Buffer[] | string[] | null, socket: Duplex): void {
    this.#slot.detach()
    this.#transfer.upgrade(status, decodedHeaders((raw ?? []) as Buffer[]), socket)
    // A tunnel counts as a connection for as long as it is open.
    if (socket.closed) this.#slot.release()
    else socket.once('close', () => this.#slot.release())
  }

  onError(error: Error & { code?: unknown; syscall?: unknown }): void {
    const kind = this.#kindOf(error.code)
    const transfer = this.#transfer
    if (
      this.#isUnsent(kind, error.syscall) &&
      !transfer.isDone &&
      !transfer.isRepeated &&
      transfer.exchange.isRepeatable
    ) {
      transfer.isRepeated = true
      this.#slot.repeat(transfer)
      return
    }
    this.#abort ??= ignore
    transfer.fail(kind, messageOf(error))
    this.#slot.release()
  }

  /**
   * True if an idle connection turned out to be closed before the upstream had the whole request: undici had not begun to
   * write, or the write itself failed. After a write that succeeded, the upstream may have processed the request, even if it
   * closed without a response.
   */
  #isUnsent(kind: UpstreamFailure['kind'], syscall: unknown): boolean {
    const { uses } = this.#slot
    return (kind === 'REFUSED' && uses > 0) || (kind === 'BROKEN' && uses > 1 && syscall === 'write')
  }

  #kindOf(code: unknown): UpstreamFailure['kind'] {
    if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED') return 'UNSENDABLE'
    if (this.#abort === undefined) return 'REFUSED'
    return typeof code === 'string' && /^(?:HPE_|UND_ERR_(?!SOCKET))/.test(code) ? 'BAD_RESPONSE' : 'BROKEN'
  }
}

const ignore = (): void => {}
