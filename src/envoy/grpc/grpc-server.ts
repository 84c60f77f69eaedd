import { once } from 'node:events'
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { Call, type CallOptions } from './call.js'
import { Connection } from './connection.js'
import type { ByteBudget } from './message-reader.js'
import type { Method, Methods } from './method.js'
import { GrpcError } from './status.js'

export interface GrpcServerOptions {
  readonly methods: Methods
  /** Throws a GrpcError if the client may not call the method. */
  readonly authorize?: ((path: string, authorization: string | undefined) => void) | undefined
  /** Certificate and key in PEM format. Without them, the server uses HTTP/2 without TLS. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined
  readonly limits?: Partial<GrpcLimits>
  /** Called with errors that are not the client's. */
  readonly onError?: (error: unknown) => void
}

export interface GrpcLimits {
  readonly maxMessageLength: number
  /** Bytes that incomplete messages of all calls may occupy. */
  readonly maxIncompleteBytes: number
  /** Streams of one connection that may be open at the same time. */
  readonly maxStreams: number
  readonly maxHeaderBytes: number
  readonly maxConnections: number
  /** A request must be received, and its response be read, within this time each. */
  readonly callMs: number
  /** A connection must have started HTTP/2 within this time. */
  readonly handshakeMs: number
  /** A connection without an answer to a ping for this long is closed. Idle connections are pinged as often. */
  readonly keepAliveMs: number
  /** Connections are closed gracefully at this age, ± 10 %, so that clients distribute their connections again. 0 for never. */
  readonly maxConnectionAgeMs: number
  /** The time that calls have to end after their connection was closed gracefully because of its age. */
  readonly graceMs: number
  /** Connections are closed gracefully when no call has begun for this long, so that probably none is in flight. */
  readonly quietMs: number
  /** Busy connections are closed gracefully after this time at the latest. */
  readonly maxQuietWaitMs: number
  /** How often calls and connections are checked. */
  readonly checkMs: number
}

export const defaultLimits: GrpcLimits = {
  maxMessageLength: 65_536,
  maxIncompleteBytes: 64 * 1_048_576,
  maxStreams: 1_000,
  maxHeaderBytes: 16_384,
  maxConnections: 4_096,
  callMs: 10_000,
  handshakeMs: 10_000,
  keepAliveMs: 60_000,
  maxConnectionAgeMs: 3_600_000,
  graceMs: 10_000,
  quietMs: 50,
  maxQuietWaitMs: 1_000,
  checkMs: 1_000,
}

const maxHeaderFields = 100

/** A gRPC server on HTTP/2. Every resource that a client can occupy is limited, in time or in number. */
export class GrpcServer {
  readonly #server: Http2Server
  readonly #limits: GrpcLimits
  readonly #callOptions: CallOptions
  readonly #connections = new Map<ServerHttp2Session, Connection>()
  readonly #check: NodeJS.Timeout
  readonly #isSecure: boolean
  #isDraining = false

  constructor({ methods, authorize, tls, limits, onError = () => {} }: GrpcServerOptions) {
    this.#limits = { ...defaultLimits, ...limits }
    const { maxMessageLength, maxIncompleteBytes, checkMs } = this.#limits
    this.#isSecure = tls !== undefined
    const budget: ByteBudget = { left: maxIncompleteBytes }
    const find = (path: string, headers: IncomingHttpHeaders): Method => {
      const method = methods.get(path)
      authorize?.(path, headers.authorization)
      if (method === undefined) throw new GrpcError('UNIMPLEMENTED', `The method ${path} does not exist.`)
      return method
    }
    this.#callOptions = { find, maxMessageLength, budget, onError }
    this.#server = openServer(tls, this.#limits)
    this.#server.maxConnections = this.#limits.maxConnections
    this.#server.on('session', (session) => this.#opened(session))
    this.#server.on('stream', (stream, headers) => this.#called(stream, headers))
    this.#check = setInterval(() => this.#checkAll(), checkMs).unref()
  }

  /** Resolves with the address and port. Port 0 picks a free port. */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    this.#server.listen(port, host)
    await once(this.#server, 'listening')
    return this.#server.address() as AddressInfo
  }

  get isSecure(): boolean {
    return this.#isSecure
  }

  /** Asks clients to open new connections elsewhere. Calls are still answered. */
  drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    for (const connection of this.#connections.values()) connection.closeGracefully()
  }

  /** Stops listening and waits for calls in flight. Closes the remaining connections after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.drain()
    clearInterval(this.#check)
    if (!this.#server.listening) return
    // From Node 24 on, the server's own method closes all connections at once, and calls in flight would be lost.
    const closed = new Promise<unknown>((resolve) => NetServer.prototype.close.call(this.#server, resolve))
    const deadline = setTimeout(() => {
      for (const connection of this.#connections.values()) connection.destroy()
    }, graceMs)
    await closed
    clearTimeout(deadline)
  }

  #opened(session: ServerHttp2Session): void {
    const connection = new Connection(session, this.#limits)
    this.#connections.set(session, connection)
    session.once('close', () => this.#connections.delete(session))
    if (this.#isDraining) connection.closeGracefully()
  }

  #called(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const now = performance.now()
    const call = new Call(stream, headers, this.#callOptions, now)
    const connection = this.#connections.get(stream.session as ServerHttp2Session)
    connection?.add(call, now)
    // The client has reset the stream, or the connection has failed.
    stream.on('error', () => {})
    stream.once('close', () => {
      connection?.remove(call)
      call.closed()
    })
    call.start()
  }

  #checkAll(): void {
    const now = performance.now()
    for (const connection of this.#connections.values()) connection.check(now)
  }
}

function openServer(
  tls: GrpcServerOptions['tls'],
  { maxStreams, maxHeaderBytes, handshakeMs }: GrpcLimits,
): Http2Server {
  const options = {
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false },
    maxHeaderListPairs: maxHeaderFields,
    maxSessionMemory: 8,
  }
  return tls === undefined
    ? createServer(options)
    : createSecureServer({
        ...options,
        ...tls,
        allowHTTP1: false,
        minVersion: 'TLSv1.2',
        handshakeTimeout: handshakeMs,
      })
}
