import type { IncomingMessage } from 'node:http'
import { ipIdentity } from '../../core/keys/ip-address.js'
import { traceIdOf } from '../../core/tracing/trace-id.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import { type AccessEntry, loggedDecision, loggedPath } from '../access-log.js'
import { upstreamHeaders, upstreamPath } from '../headers/request-head.js'
import { relayedHeaders } from '../headers/response-headers.js'
import type { TraceContext } from '../headers/trace-context.js'
import type { Route } from '../routes/route.js'
import type { Exchange } from '../upstream/exchange.js'
import type { ResponseHead } from '../upstream/response-head.js'
import type { UpstreamRequest } from '../upstream/upstream-request.js'
import { type Admission, admit } from './admission.js'
import { ClientRequest } from './client-request.js'
import type { ActiveRoute, GatewayParts } from './gateway-parts.js'
import { parseTarget, type RequestTarget } from './request-target.js'

/** A request and the route that it matched. */
export interface RouteMatch extends ActiveRoute {
  readonly request: ClientRequest
  readonly target: RequestTarget
}

/** An exchange whose upstream part is not known before its route. */
type ForwardedExchange = Exchange & { path: string; headers: readonly string[]; trace: TraceContext | undefined }

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** The common part of plain requests and WebSocket upgrades: routing, limits, headers and the access log. */
export class ProxyContext {
  readonly #parts: GatewayParts
  readonly #message: IncomingMessage
  readonly #startedAt = performance.now()
  #request: ClientRequest | undefined
  #match: RouteMatch | undefined
  #decision: AccessEntry['decision'] = null
  #limitHeaders = noHeaders
  /** Status of the response, once it is known. */
  status: number | null = null
  /** Bytes of the response body sent so far. */
  bytes = 0

  constructor(parts: GatewayParts, message: IncomingMessage) {
    this.#parts = parts
    this.#message = message
  }

  get route(): Route | undefined {
    return this.#match?.route
  }

  /** The matching route, or the error response. */
  findRoute(): RouteMatch | Answer {
    const target = parseTarget(this.#message, this.#parts.limits)
    if ('status' in target) return target
    const request = new ClientRequest(this.#message, target, this.#parts.clientIpOf)
    this.#request = request
    const open = this.#parts.findRoute(request)
    if ('status' in open) return open
    const { route, pool } = open
    this.#match = { route, pool, request, target }
    return this.#match
  }

  checkLimits({ request, route }: RouteMatch): Admission | Promise<Admission> {
    return admit(this.#parts.guard, route.limits, request)
  }

  /** Keeps the result of the limits for the response headers and the log. */
  recordAdmission(admission: Admission, { route }: RouteMatch): void {
    this.#decision = loggedDecision(admission, route)
    if (admission.kind === 'PASS') this.#limitHeaders = admission.headers
  }

  /** The address that connections count for. As for limits, an IPv6 network is one client. */
  clientAddress(): string {
    return ipIdentity(this.#request?.clientIp() ?? '')
  }

  /** Sends an admitted request upstream, with the path and headers of its route. */
  forward(exchange: ForwardedExchange, match: RouteMatch): UpstreamRequest {
    const { route, target, pool } = match
    const trace = this.#parts.traceContext?.()
    exchange.path = upstreamPath(route, target)
    exchange.headers = upstreamHeaders(this.#parts, this.#message, route, target, trace)
    exchange.trace = trace
    return pool.request(exchange)
  }

  relayedHeaders(head: ResponseHead): string[] {
    return relayedHeaders(head, (this.#match as RouteMatch).route, this.#limitHeaders)
  }

  /** Called once, when the response is complete or the client has disconnected. */
  finish(aborted: boolean): void {
    this.#request?.disconnect()
    this.#parts.log?.({
      time: new Date(performance.timeOrigin + this.#startedAt).toISOString(),
      method: this.#message.method ?? 'GET',
      path: loggedPath(this.#message.url ?? ''),
      status: this.status,
      durationMs: Math.round((performance.now() - this.#startedAt) * 1_000) / 1_000,
      bytes: this.bytes,
      route: this.#match?.route.id ?? null,
      decision: this.#decision,
      clientIp: this.#request?.clientIp() ?? null,
      traceId: traceIdOf(this.#message.headers) ?? null,
      aborted,
    })
  }
}
