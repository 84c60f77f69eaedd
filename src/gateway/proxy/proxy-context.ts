import type { IncomingMessage } from 'node:http'
import { ipIdentity } from '../../core/keys/ip-address.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import { traceIdOf } from '../../http/trace-id.js'
import { type AccessEntry, decisionOf, loggedPath } from '../access-log.js'
import { requestHeaders, requestPath } from '../headers/request-head.js'
import { relayedHeaders } from '../headers/response-headers.js'
import type { ResponseHead } from '../upstream/response-head.js'
import { type Admission, admit } from './admission.js'
import { ClientRequest } from './client-request.js'
import type { GatewayParts, OpenRoute } from './gateway-parts.js'
import { readTarget, type Target } from './request-target.js'

/** A request that leads somewhere. */
export interface Routed extends OpenRoute {
  readonly request: ClientRequest
  readonly target: Target
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** What is the same for every request, also for one to become a WebSocket: where it leads, what limits say, its line in the log. */
export class ProxyContext {
  readonly #parts: GatewayParts
  readonly #message: IncomingMessage
  readonly #startedAt = performance.now()
  #request: ClientRequest | undefined
  #routed: Routed | undefined
  #decision: AccessEntry['decision'] = null
  #limitHeaders = noHeaders
  /** Of the answer, as soon as there is one. */
  status: number | null = null
  /** Of the answer's body. */
  bytes = 0

  constructor(parts: GatewayParts, message: IncomingMessage) {
    this.#parts = parts
    this.#message = message
  }

  get open(): OpenRoute | undefined {
    return this.#routed
  }

  /** Where the request leads; or what is answered, if nowhere. */
  findRoute(): Routed | Answer {
    const target = readTarget(this.#message, this.#parts.limits)
    if ('status' in target) return target
    const request = new ClientRequest(this.#message, target, this.#parts.clientIpOf)
    this.#request = request
    const open = this.#parts.findRoute(request)
    if ('status' in open) return open
    const { route, pool } = open
    this.#routed = { route, pool, request, target }
    return this.#routed
  }

  askLimits({ request, route }: Routed): Admission | Promise<Admission> {
    return admit(this.#parts.guard, route.limits, request)
  }

  /** What the limits have said is remembered for the response and for the log. */
  takeNote(admission: Admission, { route }: Routed): void {
    this.#decision = decisionOf(admission, route)
    if (admission.kind === 'PASS') this.#limitHeaders = admission.headers
  }

  /** One IPv6 network counts as one client, as for limits. */
  clientAddress(): string {
    return ipIdentity(this.#request?.clientIp() ?? '')
  }

  /** The headers that the upstream gets, flat. */
  requestHeaders({ route, target }: Routed): string[] {
    return requestHeaders(this.#parts, this.#message, route, target)
  }

  /** Path and query as the upstream gets them. */
  requestPath({ route, target }: Routed): string {
    return requestPath(route, target)
  }

  /** What an upstream's response becomes, flat. */
  relayedHeaders(head: ResponseHead): string[] {
    return relayedHeaders(head, (this.#routed as Routed).route, this.#limitHeaders)
  }

  /** Nobody is there any more, whether there was an answer or not. */
  end(aborted: boolean): void {
    this.#request?.leave()
    this.#parts.log?.({
      time: new Date(performance.timeOrigin + this.#startedAt).toISOString(),
      method: this.#message.method ?? 'GET',
      path: loggedPath(this.#message.url ?? ''),
      status: this.status,
      durationMs: Math.round((performance.now() - this.#startedAt) * 1_000) / 1_000,
      bytes: this.bytes,
      route: this.#routed?.route.id ?? null,
      decision: this.#decision,
      clientIp: this.#request?.clientIp() ?? null,
      traceId: traceIdOf(this.#message.headers) ?? null,
      aborted,
    })
  }
}
