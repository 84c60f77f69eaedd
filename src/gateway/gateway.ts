import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { readPath } from '../core/matching/paths/normalise-path.js'
import type { ClientIpOf } from '../http/client-ip/client-ip.js'
import type { IsTrustedProxy } from '../http/client-ip/trusted-proxies.js'
import { ClientConnections } from '../http/connections/client-connections.js'
import { closeIdleAfterReading } from '../http/connections/idle-timeout.js'
import { linger } from '../http/connections/linger.js'
import { type Answer, rawAnswer } from '../http/connections/raw-answer.js'
import type { Guard } from '../http/guard.js'
import type { AccessLog } from './access-log.js'
import { Forwarding } from './headers/forwarded.js'
import type { IsUntrusted } from './headers/untrusted-headers.js'
import type { ClientRequest } from './proxy/client-request.js'
import type { GatewayParts, OpenRoute } from './proxy/gateway-parts.js'
import { ambiguousPath, noRoute, problemAnswer } from './proxy/gateway-problem.js'
import { ProxiedRequest } from './proxy/proxied-request.js'
import { reinjectWithoutUpgrade } from './proxy/reinject.js'
import { isFramed, type RequestLimits } from './proxy/request-target.js'
import { unreadableRequest } from './proxy/unreadable-request.js'
import { UpgradedRequest } from './proxy/upgraded-request.js'
import type { RoutedRequest } from './routes/predicates.js'
import type { Route } from './routes/route.js'
import type { PoolLimits } from './upstream/pool.js'
import { UpstreamPools } from './upstream/pools.js'

export interface GatewayOptions {
  readonly routes: readonly Route[]
  readonly guard: Guard<IncomingMessage>
  readonly clientIpOf: ClientIpOf
  /** Undefined: no proxy is trusted. */
  readonly isTrustedProxy: IsTrustedProxy | undefined
  readonly isUntrustedHeader: IsUntrusted
  readonly upstream: PoolLimits
  readonly requests: RequestLimits
  /** How long a client's connection without a request is kept. */
  readonly clientKeepAliveMs: number
  /** With them clients are spoken to in HTTPS. */
  readonly tls?: Certificate | undefined
  readonly log?: AccessLog | undefined
}

/** And its key, both in PEM. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** The reverse proxy: owns the server, the connections to upstreams and the routes in force. */
export class Gateway {
  readonly server: Server
  readonly #tlsServer: TlsServer | undefined
  readonly #pools: UpstreamPools
  readonly #parts: GatewayParts
  readonly #connections: ClientConnections
  readonly #tunnels = new Set<Duplex>()
  #routes: readonly OpenRoute[] = []
  #isDraining = false

  constructor(options: GatewayOptions) {
    this.#pools = new UpstreamPools(options.upstream)
    this.#parts = {
      guard: options.guard,
      forwarding: new Forwarding(options.isTrustedProxy),
      clientIpOf: options.clientIpOf,
      isUntrustedHeader: options.isUntrustedHeader,
      limits: options.requests,
      log: options.log,
      findRoute: (request) => this.#findRoute(request),
      isDraining: () => this.#isDraining,
    }
    this.setRoutes(options.routes)
    this.#tlsServer = options.tls && createTlsServer({ ...serverOptions(options), ...tlsOptions, ...options.tls })
    this.server = this.#tlsServer ?? createServer(serverOptions(options))
    this.#connections = new ClientConnections(this.server, this.#tlsServer !== undefined)
    this.#serve(this.server, options.requests)
  }

  /** From now on. Requests that are under way go where they were going. */
  setRoutes(routes: readonly Route[]): void {
    this.#routes = routes.map((route) => ({ route, pool: this.#pools.to(route.origin) }))
    this.#pools.keepOnly(routes.map(({ origin }) => origin))
    this.#pools.watch(routes.flatMap(({ timeouts }) => timeouts ?? []))
  }

  /** For connections from now on. */
  setCertificate(certificate: Certificate): void {
    this.#tlsServer?.setSecureContext({ ...tlsOptions, ...certificate })
  }

  /**
   * Stops accepting connections, closes unused ones at once and waits for requests and tunnels to end. After `graceMs`,
   * `onImpatience` rejects the requests that are still held, and tunnels are closed; what is left is closed `cutOffMs` later.
   */
  async close(graceMs: number, onImpatience: () => Promise<void>): Promise<void> {
    this.#isDraining = true
    const closed = new Promise((resolve) => this.server.close(resolve))
    this.#connections.closeUnused()
    const idle = setInterval(() => this.server.closeIdleConnections(), 50)
    const impatience = setTimeout(async () => {
      await onImpatience()
      for (const tunnel of this.#tunnels) tunnel.destroy()
      setTimeout(() => this.#connections.destroyAll(), cutOffMs).unref()
    }, graceMs)
    // The server counts tunnels too.
    await closed
    clearInterval(idle)
    clearTimeout(impatience)
    this.#pools.close()
  }

  #serve(server: Server, requests: RequestLimits): void {
    // By default, headers beyond a number are dropped without a word. Their size is limited instead.
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
        socket.write(rawAnswer(problemAnswer(405, noTunnels, { Allow: 'GET, HEAD, POST' })))
        linger(socket)
      }),
    )
    server.on('clientError', (error, socket) =>
      this.#connections.answerParseError(error, socket, (unread) => unreadableRequest(unread, requests)),
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

  /** Upstreams disagree about paths with `%2F`, `%5C` or `;`. All readings must lead to one route: its limits were asked. */
  #findRoute(request: ClientRequest): OpenRoute | Answer {
    const found = this.#routeOf(request)
    const readings = /[%;]/.test(request.url) ? readPath(request.url) : request.path
    if (typeof readings !== 'string') {
      const { method, query, host, headers } = request
      const routed = { method, query, host, headers, clientIp: () => request.clientIp() }
      if (readings.some((path) => this.#routeOf({ ...routed, path }) !== found)) return ambiguousPath()
    }
    return found ?? noRoute()
  }

  #routeOf(request: RoutedRequest): OpenRoute | undefined {
    for (const open of this.#routes) if (takes(open.route, request)) return open
    return undefined
  }
}

const serverOptions = ({ requests, clientKeepAliveMs }: GatewayOptions) => ({
  // Both limits are checked one by one later, so that each has its own answer.
  maxHeaderSize: requests.maxHeaderSize + requests.maxUrlLength,
  keepAliveTimeout: clientKeepAliveMs,
  // Uploads may take as long as they move; who does not send headers is sent away.
  requestTimeout: 0,
  headersTimeout: 60_000,
  insecureHTTPParser: false,
  // Missed later too: what node:http answers by itself is neither a problem document nor logged.
  requireHostHeader: false,
  noDelay: true,
})

const tlsOptions = { minVersion: 'TLSv1.2', handshakeTimeout: 10_000 } as const

/** Clients whose held requests were rejected have this long to read the answer. */
const cutOffMs = 500

function takes({ predicates }: Route, request: RoutedRequest): boolean {
  for (let i = 0; i < predicates.length; i++) if (!predicates[i]?.(request)) return false
  return true
}

const noTunnels = 'This gateway does not support CONNECT. Send the request to the gateway itself.'

const isWebSocket = ({ headers, method }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket'
