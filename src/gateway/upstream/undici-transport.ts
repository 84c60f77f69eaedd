import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { messageOf } from '../../core/errors.js'
import type { UpstreamFailure } from './exchange.js'
import { declaresBody, decodedHeaders, hasNoBody } from './response-head.js'
import type { Slot } from './slot.js'
import type { Transport, UpstreamRequest } from './upstream-request.js'

type Abort = (error?: Error) => void

/** One attempt to send a request with undici, as the handler of `Client.dispatch`. Reports to an UpstreamRequest and releases its Slot. */
export class UndiciTransport implements Transport, Dispatcher.DispatchHandler {
  readonly #upstreamRequest: UpstreamRequest
  readonly #slot: Slot
  #abort: Abort | undefined
  #resume: (() => void) | undefined
  #isAborted = false

  constructor(request: UpstreamRequest, slot: Slot) {
    this.#upstreamRequest = request
    this.#slot = slot
    request.connecting(this)
  }

  dispatchOptions(servername: string): Dispatcher.DispatchOptions & { servername: string } {
    const { method, path, headers, body, isUpgrade } = this.#upstreamRequest.exchange
    return {
      method,
      path,
      headers: headers as string[],
      body: body?.stream() ?? null,
      upgrade: isUpgrade ? 'websocket' : null,
      // By default, undici derives it from the Host header, which may come from the client, and reconnects if it changes.
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
    // undici calls this again before it retries by itself. Only the slot may retry.
    if (this.#isAborted || this.#abort !== undefined) {
      abort()
      return
    }
    this.#abort = abort
    this.#slot.countUse(this.#upstreamRequest.exchange.body !== undefined)
    this.#upstreamRequest.sending()
  }

  onBodySent(): void {
    this.#upstreamRequest.sending()
  }

  onRequestSent(): void {
    this.#upstreamRequest.sent()
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    const headers = decodedHeaders(raw)
    if (status < 200) {
      this.#upstreamRequest.information(status, headers)
      return true
    }
    this.#resume = resume
    this.#upstreamRequest.head(status, headers)
    // A 304 may have a Content-Length but never a body (RFC 9110, 8.6). undici waits for the body and fails the request.
    if (hasNoBody(status) && this.#upstreamRequest.exchange.method !== 'HEAD' && declaresBody(headers)) {
      this.#upstreamRequest.end([])
      this.abort()
    }
    return true
  }

  onData(chunk: Buffer): boolean {
    return this.#upstreamRequest.data(chunk)
  }

  onComplete(trailers: unknown): void {
    // Typed as strings, but undici passes buffers.
    this.#upstreamRequest.end(decodedHeaders((trailers ?? []) as Buffer[]))
    this.#slot.release()
  }

  onUpgrade(status: number, raw: Buffer[] | string[] | null, socket: Duplex): void {
    this.#slot.detach()
    this.#upstreamRequest.upgrade(status, decodedHeaders((raw ?? []) as Buffer[]), socket)
    // A tunnel counts as a connection for as long as it is open.
    if (socket.closed) this.#slot.release()
    else socket.once('close', () => this.#slot.release())
  }

  onError(error: Error & { code?: unknown; syscall?: unknown }): void {
    const kind = this.#kindOf(error.code)
    const request = this.#upstreamRequest
    if (this.#isUnsent(kind, error.syscall) && !request.isDone && !request.isRetried && request.exchange.isRetryable) {
      request.isRetried = true
      this.#slot.retry(request)
      return
    }
    this.#abort ??= ignore
    request.fail(kind, messageOf(error))
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
