import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import type { ClientIpOf } from '../http/client-ip.js'
import type { Guard } from '../http/guard.js'
import { linger } from '../http/linger.js'
import { answerParseError } from '../http/parse-error.js'
import { rawAnswer } from '../http/raw-answer.js'
import type { IsTrustedProxy } from '../http/trusted-proxies.js'
import type { AccessLog } from './access-log.js'
import type { ClientRequest } from './client-request.js'
import { Forwarding } from './forwarded.js'
import type { GatewayParts, OpenRoute } from './gateway-parts.js'
import { problemAnswer } from './gateway-problem.js'
import type { RequestLimits } from './objection.js'
import { ProxiedRequest } from './proxied-request.js'
import { reinjectWithoutUpgrade } from './reinject.js'
import type { Route } from './route.js'
import { unreadableRequest } from './unreadable-request.js'
import type { IsUntrusted } from './untrusted-headers.js'
import { UpgradedRequest } from './upgraded-request.js'
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
  readonly #tunnels = new Set<Duplex>()
  /** What TLS stands on: until hands are shaken, node:http knows nothing of a connection. */
  readonly #sockets = new Set<Duplex>()
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
    this.#tlsServer?.on('connection', (socket: Duplex) => {
      this.#sockets.add(socket.once('close', () => this.#sockets.delete(socket)))
    })
    this.server = this.#tlsServer ?? createServer(serverOptions(options))
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
   * Takes no more connections, and finishes what is under way. After `graceMs` the requests that are still held are sent
   * away by `onImpatience`; what does not end by itself then is cut off.
   */
  async close(graceMs: number, onImpatience: () => Promise<void>): Promise<void> {
    this.#isDraining = true
    const closed = new Promise((resolve) => this.server.close(resolve))
    const idle = setInterval(() => this.server.closeIdleConnections(), 50)
    const impatience = setTimeout(async () => {
      await onImpatience()
      for (const tunnel of this.#tunnels) tunnel.destroy()
      setTimeout(() => this.#cutOff(), cutOffMs).unref()
    }, graceMs)
    await Promise.all([closed, this.#tunnelsClosed()])
    clearInterval(idle)
    clearTimeout(impatience)
    this.#pools.close()
  }

  #cutOff(): void {
    this.server.closeAllConnections()
    for (const socket of this.#sockets) socket.destroy()
  }

  #serve(server: Server, requests: RequestLimits): void {
    // By default, headers beyond a number are dropped without a word. Their size is limited instead.
    server.maxHeadersCount = 0
    server.on('request', (request, response) => new ProxiedRequest(this.#parts, request, response, false).start())
    for (const event of ['checkContinue', 'checkExpectation'] as const)
      server.on(event, (request, response) => new ProxiedRequest(this.#parts, request, response, true).start())
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, first: Buffer) => {
      if (!isWebSocket(request)) {
        const arrival = this.#tlsServer === undefined ? 'connection' : 'secureConnection'
        return reinjectWithoutUpgrade(server, arrival, request, socket, first)
      }
      this.#tunnels.add(socket.once('close', () => this.#tunnels.delete(socket)))
      void new UpgradedRequest(this.#parts, request, socket, first).start()
    })
    server.on('connect', (_, socket: Duplex) => {
      socket.on('error', () => socket.destroy())
      socket.write(rawAnswer(problemAnswer(405, 'This gateway makes no tunnels.', { Allow: 'GET, HEAD, POST' })))
      linger(socket)
    })
    server.on('clientError', (error, socket) =>
      answerParseError(error, socket, (unread) => unreadableRequest(unread, requests)),
    )
  }

  #findRoute(request: ClientRequest): OpenRoute | undefined {
    for (const open of this.#routes) if (takes(open.route, request)) return open
    return undefined
  }

  async #tunnelsClosed(): Promise<void> {
    await Promise.all([...this.#tunnels].map((tunnel) => new Promise((resolve) => tunnel.once('close', resolve))))
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

/** Those who were sent away have this long to read it. */
const cutOffMs = 500

function takes({ predicates }: Route, request: ClientRequest): boolean {
  for (let i = 0; i < predicates.length; i++) if (!predicates[i]?.(request)) return false
  return true
}

const isWebSocket = ({ headers, method }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket'
