/** Requests and responses of node:http, and of the frameworks that stand on it. */
import type { Socket } from 'node:net'
import { linger } from '../../http/connections/linger.js'
import type { EdgeHeaders, EdgeRequest } from '../../http/edge-request.js'
import type { Outcome } from '../../http/guard.js'
import { stackedHeaders } from '../../http/headers/stacked-headers.js'

export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** Where a middleware is mounted below a path, `url` lacks that path. */
  readonly originalUrl?: string | undefined
  readonly headers: EdgeHeaders
  readonly socket: {
    readonly remoteAddress?: string | undefined
    readonly destroyed?: boolean | undefined
    destroySoon?: (() => void) | undefined
  }
  readonly httpVersionMajor?: number | undefined
  readonly complete?: boolean | undefined
}

export interface NodeResponse {
  statusCode: number
  readonly socket?: unknown
  readonly destroyed?: boolean | undefined
  readonly headersSent?: boolean | undefined
  readonly writableEnded?: boolean | undefined
  /** HTTP/2 alone. */
  readonly stream?: { readonly destroyed?: boolean | undefined } | undefined
  getHeader(name: string): unknown
  setHeader(name: string, value: string | number): unknown
  once(event: 'close', listener: () => void): unknown
  end(body: string): unknown
}

interface Emitter {
  once(event: 'close', listener: () => void): unknown
}

/** On a socket, its address: Node looks through the connection for that whenever it is asked. */
const noted = Symbol('fluxgate.remoteAddress')

type NotedSocket = NodeRequest['socket'] & { [noted]?: string | undefined }

/** Made for every request, so it copies nothing of it. */
export class NodeEdge implements EdgeRequest {
  readonly request: NodeRequest
  readonly response: NodeResponse
  readonly givenUrl: string | undefined
  readonly givenAddress: string | undefined

  constructor(request: NodeRequest, response: NodeResponse, url: string | undefined, address: string | undefined) {
    this.request = request
    this.response = response
    this.givenUrl = url
    this.givenAddress = address
  }

  get method(): string {
    return this.request.method ?? 'GET'
  }

  get url(): string {
    return this.givenUrl ?? this.request.originalUrl ?? this.request.url ?? '/'
  }

  get headers(): EdgeHeaders {
    return this.request.headers
  }

  get remoteAddress(): string | undefined {
    if (this.givenAddress !== undefined) return this.givenAddress
    const socket: NotedSocket = this.request.socket
    socket[noted] ??= socket.remoteAddress
    return socket[noted]
  }

  /** Aborts when the client is gone. */
  signal(): AbortSignal {
    const { request, response } = this
    const leaving = new AbortController()
    const leave = (): void => leaving.abort()
    if (this.isGone()) leave()
    // A pipelined request's response has no socket before the one ahead of it is finished, and does not hear of its end.
    else (response.socket === null ? (request.socket as Emitter) : response).once('close', leave)
    return leaving.signal
  }

  isGone(): boolean {
    return isSent(this.response) || this.request.socket.destroyed === true
  }
}

/** True if nothing can be written to the response: the application has sent or ended it, or its stream is destroyed. */
export const isSent = ({ headersSent, writableEnded, destroyed, stream }: NodeResponse): boolean =>
  headersSent === true || writableEnded === true || destroyed === true || stream?.destroyed === true

/** `url` and `address` where the framework knows better than the request. */
export const edgeOf = (request: NodeRequest, response: NodeResponse, url?: string, address?: string): NodeEdge =>
  new NodeEdge(request, response, url, address)

/** As much of a request of Express or Fastify as says where it comes from. */
interface FrameworkRequest {
  readonly ip?: string | undefined
  readonly app?: { readonly settings?: Readonly<Record<string, unknown>> | undefined } | undefined
}

/**
 * `request.ip`, if Express (`trust proxy`) or Fastify (`trustProxy`) trusts any proxy. Otherwise that is the address of the
 * socket, which is read for less. Only requests of a Fastify that trusts proxies have `ips`.
 */
export function frameworkAddress(request: object): string | undefined {
  const { settings } = (request as FrameworkRequest).app ?? {}
  const isTrusting = settings === undefined ? 'ips' in request : Boolean(settings['trust proxy'])
  return isTrusting ? (request as FrameworkRequest).ip : undefined
}

/** True: on with the application. Otherwise the response was sent, or nobody is there to read one. */
export function mayPass(outcome: Outcome, request: NodeRequest, response: NodeResponse): boolean {
  if (outcome.kind === 'GONE') return false
  const isRefusal = outcome.kind === 'REFUSE'
  setHeaders(response, outcome.headers, isRefusal)
  if (!isRefusal) return true
  if (closesUnread(request)) response.setHeader('Connection', 'close')
  response.statusCode = outcome.status
  response.setHeader('Content-Length', Buffer.byteLength(outcome.body))
  response.end(outcome.body)
  return false
}

export function setHeaders(response: NodeResponse, told: Readonly<Record<string, string>>, isRefusal: boolean): void {
  const headers = stackedHeaders(told, response, isRefusal)
  for (const name in headers) response.setHeader(name, headers[name] as string)
}

/** The rest of a body up to this size is read and discarded after a rejection, so that the connection can be kept. */
const mostToDiscard = 65_536

/**
 * True if the response to a rejected request must close the connection, because more of its body may follow than is worth
 * reading. Node destroys such a socket right after the response. While the client is still sending, that resets the
 * connection, and the client loses the response; so the socket lingers. HTTP/2 ends the stream instead.
 */
export function closesUnread({ headers, complete, httpVersionMajor, socket }: NodeRequest): boolean {
  if (complete || httpVersionMajor !== 1) return false
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= mostToDiscard)
    return false
  socket.destroySoon = () => linger(socket as Socket)
  return true
}
