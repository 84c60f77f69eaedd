import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { MalformedMessage } from '../protobuf/wire-reader.js'
import { type ByteBudget, framed, MessageReader } from './message-reader.js'
import type { Method, StreamCall, StreamReceiver } from './method.js'
import { encodeStatusMessage, GrpcError, statusCodes } from './status.js'
import { parseTimeout } from './timeout.js'

export interface CallOptions {
  /** Returns the method of a path, or throws a GrpcError if the client may not call it. */
  readonly find: (path: string, headers: IncomingHttpHeaders) => Method
  readonly maxMessageLength: number
  readonly budget: ByteBudget
  /** Called with errors that are not the client's. */
  readonly onError: (error: unknown) => void
}

const responseHeaders = Object.freeze({ ':status': 200, 'content-type': 'application/grpc' })
const responseOptions = Object.freeze({ waitForTrailers: true })
const okTrailers = Object.freeze({ 'grpc-status': String(statusCodes.OK) })

const longestTimerMs = 2 ** 31 - 1

/** The messages that a stream may send before the client has read them. */
const maxBufferedBytes = 1_048_576

/** One gRPC call: a stream of HTTP/2. */
export class Call implements StreamCall {
  /** When the call began to receive its request, or to send its response. Undefined while it is decided. */
  waitsSince: number | undefined
  readonly #startedAt: number
  readonly #stream: ServerHttp2Stream
  readonly #headers: IncomingHttpHeaders
  readonly #options: CallOptions
  readonly #reader: MessageReader
  /** The only message of a unary call, until the client has ended its request. */
  #message: Buffer | undefined
  #receiver: StreamReceiver | undefined
  #method: Method | undefined
  #aborting: AbortController | undefined
  /** Ends the call at its deadline. Set if something waits for it. */
  #timer: NodeJS.Timeout | undefined
  #trailers: Readonly<Record<string, string>> = okTrailers
  #hasResponded = false
  #hasEnded = false

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, options: CallOptions, startedAt: number) {
    this.waitsSince = startedAt
    this.#startedAt = startedAt
    this.#stream = stream
    this.#headers = headers
    this.#options = options
    this.#reader = new MessageReader(options.maxMessageLength, options.budget)
  }

  start(): void {
    const { ':method': verb, ':path': path = '', 'content-type': type = '' } = this.#headers
    if (verb !== 'POST' || !/^application\/grpc(?:\+proto)?(?:;|$)/.test(type)) {
      this.#refuse(verb === 'POST' ? 415 : 405)
      return
    }
    try {
      this.#method = this.#options.find(path, this.#headers)
      if (this.#method.kind === 'STREAM') {
        this.waitsSince = undefined
        this.#receiver = this.#method.open(this)
      }
    } catch (error) {
      this.end(asError(error))
      return
    }
    this.#stream.on('data', (chunk: Buffer) => this.#received(chunk))
    this.#stream.on('end', () => this.#requestEnded())
  }

  /** Called when the stream has closed, for whatever reason. */
  closed(): void {
    this.#receiver?.closed()
    if (this.#hasEnded) return
    this.#finish()
    this.#aborting?.abort()
  }

  header(name: string): string | undefined {
    const value = this.#headers[name]
    return typeof value === 'string' ? value : undefined
  }

  signal(): AbortSignal {
    if (this.#aborting !== undefined) return this.#aborting.signal
    this.#aborting = new AbortController()
    const timeoutMs = parseTimeout(this.header('grpc-timeout'))
    if (this.#hasEnded) this.#aborting.abort()
    else if (timeoutMs !== undefined) {
      const left = Math.max(0, timeoutMs - (performance.now() - this.#startedAt))
      this.#timer = setTimeout(() => this.expire(), Math.min(left, longestTimerMs))
    }
    return this.#aborting.signal
  }

  /** Ends a call that takes too long. If the client does not read the response, the stream is reset. */
  expire(): void {
    if (this.#hasEnded) this.#stream.close(constants.NGHTTP2_CANCEL)
    else this.end(new GrpcError('DEADLINE_EXCEEDED', 'The call did not complete in time.'))
  }

  send(message: Buffer): void {
    if (this.#hasEnded || this.#isGone) return
    if (!this.#hasResponded) this.#respond()
    if (this.#stream.writableLength > maxBufferedBytes) this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    else this.#stream.write(framed(message))
  }

  end(error?: Error): void {
    if (this.#hasEnded) return
    this.#finish()
    if (error !== undefined) this.#aborting?.abort()
    if (this.#isGone) return
    const status = error === undefined ? okTrailers : this.#statusOf(error)
    if (!this.#hasResponded && error !== undefined) {
      // Only trailers: the status is in the first and only block of headers.
      this.#stream.respond({ ...responseHeaders, ...status }, { endStream: true })
      this.#stopReading()
      return
    }
    if (!this.#hasResponded) this.#respond()
    this.#trailers = status
    this.#stream.end()
  }

  #finish(): void {
    this.#hasEnded = true
    this.waitsSince ??= performance.now()
    this.#reader.release()
    clearTimeout(this.#timer)
  }

  #respond(): void {
    this.#hasResponded = true
    this.#stream.respond(responseHeaders, responseOptions)
    this.#stream.on('wantTrailers', () => {
      this.#stream.sendTrailers(this.#trailers)
      this.#stopReading()
    })
  }

  /** Answers a unary call. */
  #answer(message: Buffer): void {
    if (this.#hasEnded) return
    this.#finish()
    if (this.#isGone) return
    this.waitsSince = performance.now()
    this.#respond()
    this.#stream.end(framed(message))
  }

  #received(chunk: Buffer): void {
    if (this.#hasEnded) return
    try {
      this.#reader.push(chunk, (message) => this.#take(message))
    } catch (error) {
      this.end(asError(error))
    }
  }

  #take(message: Buffer): void {
    if (this.#hasEnded) return
    if (this.#receiver !== undefined) this.#receiver.message(message)
    else if (this.#message === undefined) this.#message = message
    else throw new GrpcError('UNIMPLEMENTED', 'The method takes one message; the request has several.')
  }

  #requestEnded(): void {
    if (this.#hasEnded) return
    if (this.#reader.isIncomplete) {
      this.end(new GrpcError('INTERNAL', 'The request ends within a message.'))
    } else if (this.#receiver !== undefined) this.#receiver.end()
    else this.#handle()
  }

  #handle(): void {
    const message = this.#message
    if (this.#method?.kind !== 'UNARY') return
    if (message === undefined) {
      this.end(new GrpcError('UNIMPLEMENTED', 'The method takes one message; the request has none.'))
      return
    }
    this.waitsSince = undefined
    try {
      const answer = this.#method.handle(message, this)
      if (answer instanceof Promise)
        answer.then(
          (reply) => this.#answer(reply),
          (error: unknown) => this.end(asError(error)),
        )
      else this.#answer(answer)
    } catch (error) {
      this.end(asError(error))
    }
  }

  #statusOf(error: Error): Readonly<Record<string, string>> {
    const { code, message } = statusOfError(error)
    if (!(error instanceof GrpcError || error instanceof MalformedMessage)) this.#options.onError(error)
    return { 'grpc-status': String(statusCodes[code]), 'grpc-message': encodeStatusMessage(message) }
  }

  /** Answers a request that is not gRPC. */
  #refuse(status: number): void {
    this.#hasEnded = true
    this.#stream.respond({ ':status': status }, { endStream: true })
    this.#stopReading()
  }

  /** True if nothing can be sent any more: the client has reset the stream, or the connection has ended. */
  get #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed
  }

  /** Drops what the client still sends, so that it need not send it. */
  #stopReading(): void {
    if (!this.#stream.readableEnded) this.#stream.close(constants.NGHTTP2_NO_ERROR)
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

/** Errors that are not about the request mean that the service is unavailable now, so that Envoy applies its failure mode. */
function statusOfError(error: Error): Pick<GrpcError, 'code' | 'message'> {
  if (error instanceof GrpcError) return error
  if (error instanceof MalformedMessage)
    return { code: 'INTERNAL', message: `The request is not a valid protobuf message. ${error.message}` }
  return { code: 'UNAVAILABLE', message: 'The rate limit service cannot decide now.' }
}
