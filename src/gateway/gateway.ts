import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { interpretPath } from '../core/matching/paths/normalise-path.js'
import type { ClientIpOf } from '../http/client-ip/client-ip.js'
import type { IsTrustedProxy } from '../http/client-ip/trusted-proxies.js'
import { ClientConnections } from '../http/connections/client-connections.js'
import { closeIdleAfterReading } from '../http/connections/idle-timeout.js'
import { linger } from '../http/connections/linger.js'
import { type Answer, rawAnswer } from '../http/connections/raw-answer.js'
import type { Guard } from '../http/guard.js'
import type { AccessLog } from './access-log.js'
import { ForwardedHeaders } from './headers/forwarded.js'
import { traceContexts } from './headers/trace-context.js'
import type { IsUntrusted } from './headers/untrusted-headers.js'
import type { ClientRequest } from './proxy/client-request.js'
import type { ActiveRoute, GatewayParts } from './proxy/gateway-parts.js'
import { ambiguousPath, noRoute, problemAnswer } from './proxy/gateway-problem.js'
import { ProxiedRequest } from './proxy/proxied-request.js'
import { reinjectWithoutUpgrade } from './proxy/reinject.js'
import { isFramed, parseErrorAnswer, type RequestLimits } from './proxy/request-target.js'
import { UpgradedRequest } from './proxy/upgraded-request.js'
import type { RoutedRequest } from './routes/predicates.js'
import type { Route } from './routes/route.js'
import { type PoolLimits, UpstreamPools } from './upstream/pool.js'

export interface GatewayOptions {
  readonly routes: readonly Route[]
  readonly guard: Guard<IncomingMessage>
  readonly clientIpOf: ClientIpOf
  /** Undefined: no proxy is trusted. */
  readonly isTrustedProxy: IsTrustedProxy | undefined
  readonly isUntrustedHeader: IsUntrusted
  readonly upstream: PoolLimits
  readonly requests: RequestLimits
  /** How long an idle client connection is kept open. */
  readonly clientKeepAliveMs: number
  /** Serves HTTPS if present, HTTP otherwise. */
  readonly tls?: Certificate | undefined
  readonly log?: AccessLog | undefined
}

/** A certificate and its key, both in PEM format. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** The reverse proxy: owns the server, the upstream connections and the active routes. */
export class Gateway {
  readonly server: Server
  readonly #tlsServer: TlsServer | undefined
  readonly #pools: UpstreamPools
  readonly #parts: GatewayParts
  readonly #connections: ClientConnections
  readonly #tunnels = new Set<Duplex>()
  #routes: readonly ActiveRoute[] = []
  #isDraining = false

  constructor(options: GatewayOptions) {
    this.#pools = new UpstreamPools(options.upstream)
    this.#parts = {
      guard: options.guard,
      forwarding: new ForwardedHeaders(options.isTrustedProxy),
      clientIpOf: options.clientIpOf,
      isUntrustedHeader: options.isUntrustedHeader,
      limits: options.requests,
      log: options.log,
      traceContext: traceContexts(),
      findRoute: (request) => this.#findRoute(request),
      isDraining: () => this.#isDraining,
    }
    this.setRoutes(options.routes)
    this.#tlsServer = options.tls && createTlsServer({ ...serverOptions(options), ...tlsOptions, ...options.tls })
    this.server = this.#tlsServer ?? createServer(serverOptions(options))
    this.#connections = new ClientConnections(this.server, this.#tlsServer !== undefined)
    this.#serve(this.server, options.requests)
  }

  /** Replaces the routes. Requests in flight keep their route. */
  setRoutes(routes: readonly Route[]): void {
    this.#routes = routes.map((route) => ({ route, pool: this.#pools.poolFor(route.origin) }))
    this.#pools.keepOnly(routes.map(({ origin }) => origin))
    this.#pools.setCheckInterval(routes.flatMap(({ timeouts }) => timeouts ?? []))
  }

  /** Replaces the certificate for new connections. */
  setCertificate(certificate: Certificate): void {
    this.#tlsServer?.setSecureContext({ ...tlsOptions, ...certificate })
  }

  /**
   * Stops accepting connections, closes unused ones immediately and waits for requests and tunnels to end. After `graceMs`,
   * `rejectHeld` rejects the requests that are still held, and tunnels are closed. `rejectionGraceMs` later, all remaining
   * connections are closed.
   */
  async close(graceMs: number, rejectHeld: () => Promise<void>): Promise<void> {
    this.#isDraining = true
    const closed = new Promise((resolve) => this.server.close(resolve))
    this.#connections.closeUnused()
    const idle = setInterval(() => this.server.closeIdleConnections(), 50)
    const deadline = setTimeout(async () => {
      await rejectHeld()
      for (const tunnel of this.#tunnels) tunnel.destroy()
      setTimeout(() => this.#connections.destroyAll(), rejectionGraceMs).unref()
    }, graceMs)
    // Resolves after all tunnels are closed too.
    await closed
    clearInterval(idle)
    clearTimeout(deadline)
    this.#pools.close()
  }

  #serve(server: Server, requests: RequestLimits): void {
    // By default, node:http silently drops headers beyond a count. Here only their size is limited.
    server.maxHeadersCount = 0
    closeIdleAfterReading(server)
    const begin = (expectsContinue: boolean) => (request: IncomingMessage, response: ServerResponse) => {
      const proxied = new ProxiedRequest(this.#parts, request, response, expectsContinue)
      if (!this.#connections.begin(response, proxied.onClose)) return
      if (!isFramed(request)) this.#connections.endAfterThis(request.socket)
      proxied.start()
    }
    server.on('request', begin(false)).on('checkContinue', begin(true)).on('checkExpectation', begin(true))
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, first: Buffer) =>
      this.#connections.whenAnswered(socket, () => this.#upgrade(request, socket, first)),
    )
    server.on('connect', (_, socket: Duplex) =>
      this.#connections.whenAnswered(socket, () => {
        socket.on('error', () => socket.destroy())
        socket.write(rawAnswer(problemAnswer(405, connectNotSupported, { Allow: 'GET, HEAD, POST' })))
        linger(socket)
      }),
    )
    server.on('clientError', (error, socket) =>
      this.#connections.answerParseError(error, socket, (parseError) => parseErrorAnswer(parseError, requests)),
    )
  }

  #upgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void {
    if (!isWebSocket(request)) {
      const arrival = this.#tlsServer === undefined ? 'connection' : 'secureConnection'
      reinjectWithoutUpgrade(this.server, arrival, request, socket, first)
      return
    }
    this.#tunnels.add(socket.once('close', () => this.#tunnels.delete(socket)))
    void new UpgradedRequest(this.#parts, request, socket, first).start()
  }

  /**
   * Upstreams interpret `%2F`, `%5C` and `;` in paths differently. All interpretations must match the same route; otherwise a
   * request could avoid the limits of the route that the upstream serves.
   */
  #findRoute(request: ClientRequest): ActiveRoute | Answer {
    const found = this.#matchRoute(request)
    const interpretations = /[%;]/.test(request.url) ? interpretPath(request.url) : request.path
    if (typeof interpretations !== 'string') {
      const { method, query, host, headers } = request
      const routed = { method, query, host, headers, clientIp: () => request.clientIp() }
      if (interpretations.some((path) => this.#matchRoute({ ...routed, path }) !== found)) return ambiguousPath()
    }
    return found ?? noRoute()
  }

  #matchRoute(request: RoutedRequest): ActiveRoute | undefined {
    for (const open of this.#routes) if (matches(open.route, request)) return open
    return undefined
  }
}

const serverOptions = ({ requests, clientKeepAliveMs }: GatewayOptions) => ({
  // `parseTarget` checks each limit separately, so that each has its own status.
  maxHeaderSize: requests.maxHeaderSize + requests.maxUrlLength,
  keepAliveTimeout: clientKeepAliveMs,
  // Uploads have no total deadline, only a minimum rate. Headers have a deadline.
  requestTimeout: 0,
  headersTimeout: 60_000,
  insecureHTTPParser: false,
  // `parseTarget` checks it: a response of node:http would be neither a problem document nor logged.
  requireHostHeader: false,
  noDelay: true,
})

const tlsOptions = { minVersion: 'TLSv1.2', handshakeTimeout: 10_000 } as const

/** Time for clients to read the rejection of a held request. */
const rejectionGraceMs = 500

function matches({ predicates }: Route, request: RoutedRequest): boolean {
  for (let i = 0; i < predicates.length; i++) if (!predicates[i]?.(request)) return false
  return true
}

const connectNotSupported = 'This gateway does not support CONNECT. Send the request to the gateway itself.'

/** An offer in HTTP/1.0 must be ignored (RFC 9110, 7.8). */
const isWebSocket = ({ headers, method, httpVersion }: IncomingMessage): boolean =>
  method === 'GET' && httpVersion === '1.1' && headers.upgrade?.trim().toLowerCase() === 'websocket'
