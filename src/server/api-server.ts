import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { FluxGateError } from '../core/errors.js'
import { ClientConnections } from '../http/connections/client-connections.js'
import { closeIdleAfterReading } from '../http/connections/idle-timeout.js'
import { parseErrorAnswer } from './request/api-problem.js'
import { ApiRequest, maxHeaders, type RequestParts } from './request/api-request.js'
import { isLoopback } from './request/loopback.js'
import type { Route } from './request/route.js'
import { Router } from './request/router.js'
import { type TokenOptions, Tokens } from './request/tokens.js'
import { type ServerLog, silentLog } from './server-log.js'

export interface ApiServerOptions extends TokenOptions {
  readonly routes: readonly Route[]
  readonly log?: ServerLog | undefined
  /** Certificate and key in PEM format. Without them, the server uses plain HTTP. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined
  readonly times?: RequestTimes
  /** Called when draining starts, to end long-lived responses. */
  readonly onDrain?: (() => void) | undefined
}

export interface ListenOptions {
  readonly host?: string
  readonly port?: number
}

/** Timeouts for receiving the headers and the whole request. */
export interface RequestTimes {
  readonly headersMs: number
  readonly requestMs: number
  /** How often connections are checked for timeouts. */
  readonly everyMs: number
}

export const defaultTimes: RequestTimes = { headersMs: 10_000, requestMs: 30_000, everyMs: 5_000 }
/** Longer than the idle timeout of most load balancers (60 s), so that they close idle connections first. */
const keepAliveMs = 65_000
export const maxHeaderBytes = 16_384

/** The HTTP server: owns the port and its connections, dispatches requests to routes. */
export class ApiServer {
  readonly #server: Server
  readonly #tokens: Tokens
  readonly #isSecure: boolean
  readonly #onDrain: (() => void) | undefined
  readonly #connections: ClientConnections
  #isDraining = false

  constructor({ routes, log = silentLog, tls, times = defaultTimes, onDrain, ...tokens }: ApiServerOptions) {
    this.#tokens = new Tokens(tokens)
    this.#isSecure = tls !== undefined
    this.#onDrain = onDrain
    const parts: RequestParts = {
      router: new Router(routes),
      tokens: this.#tokens,
      log,
      isDraining: () => this.#isDraining,
    }
    this.#server = openServer(tls, times)
    const connections = new ClientConnections(this.#server, this.#isSecure)
    this.#connections = connections
    const answer = (awaitsContinue: boolean) => (request: IncomingMessage, response: ServerResponse) => {
      if (connections.begin(response)) new ApiRequest(parts, request, response, awaitsContinue).start()
    }
    this.#server
      .on('request', answer(false))
      .on('checkContinue', answer(true))
      .on('clientError', (error, socket) => connections.answerParseError(error, socket, parseErrorAnswer))
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Resolves with the URL and port. Rejects a non-loopback address if there is no admin token. */
  async listen({
    host = '127.0.0.1',
    port = 8090,
  }: ListenOptions = {}): Promise<{ readonly url: string; readonly port: number }> {
    if (this.#tokens.isOpen && !isLoopback(host)) throw missingAdminToken(host)
    this.#server.listen(port, host)
    await once(this.#server, 'listening')
    const { address, port: taken, family } = this.#server.address() as AddressInfo
    // A host name may resolve to any address, so the bound address is checked too.
    if (this.#tokens.isOpen && !isLoopback(address)) {
      await this.close(0)
      throw missingAdminToken(`${host} (${address})`)
    }
    const shown = family === 'IPv6' ? `[${address}]` : address
    return { url: `${this.#isSecure ? 'https' : 'http'}://${shown}:${taken}`, port: taken }
  }

  /** Readiness probes fail from now on. Requests are still answered, and each connection is closed after its response. */
  drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    this.#onDrain?.()
  }

  /** Stops accepting connections and waits for requests in flight. Closes the remaining connections after `graceMs`. */
  async close(graceMs = 10_000): Promise<void> {
    this.drain()
    if (!this.#server.listening) return
    const closed = new Promise((resolve) => this.#server.close(resolve))
    const idle = setInterval(() => this.#server.closeIdleConnections(), 50)
    const deadline = setTimeout(() => this.#server.closeAllConnections(), graceMs)
    this.#connections.closeUnused()
    await closed
    clearInterval(idle)
    clearTimeout(deadline)
  }
}

function openServer(tls: ApiServerOptions['tls'], times: RequestTimes): Server {
  const options = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: times.headersMs,
    requestTimeout: times.requestMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: times.everyMs,
    insecureHTTPParser: false,
    requireHostHeader: true,
    noDelay: true,
  }
  const server =
    tls === undefined ? createServer(options) : createTlsServer({ ...options, ...tls, minVersion: 'TLSv1.2' })
  // One more than allowed, so that a request with too many headers is detected instead of truncated.
  server.maxHeadersCount = maxHeaders + 1
  closeIdleAfterReading(server)
  return server
}

function missingAdminToken(host: string): FluxGateError {
  const message = `The server cannot listen on ${host} without an admin token, because anyone could access it. Set server.adminToken (or FLUXGATE_ADMIN_TOKEN), or listen on 127.0.0.1.`
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', message, {
    errors: [
      {
        path: 'server.host',
        message: `must be 127.0.0.1, ::1 or localhost without an admin token; received ${host}`,
      },
    ],
  })
}
