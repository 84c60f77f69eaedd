/** Requests and responses of `node:http`, and of the frameworks that are built on it. */
import type { Socket } from 'node:net'
import type { Decision } from '../../core/decision.js'
import { linger } from '../../http/connections/linger.js'
import type { EdgeHeaders, EdgeRequest } from '../../http/edge-request.js'
import { type Guard, type Outcome, onAdmitted } from '../../http/guard.js'
import { mergeHeaders } from '../../http/rate-limit-headers.js'
import type { Rejection } from '../../http/rejection.js'
import { type ClosingEmitter, closeSignal } from './close-signal.js'

/** The part of a request that is used. */
export interface NodeRequest {
  /** The HTTP method. Default: `GET`. */
  readonly method?: string | undefined
  /** The request target: path and query. */
  readonly url?: string | undefined
  /** Express: the complete URL. In a middleware that is mounted at a path, `url` lacks that path. */
  readonly originalUrl?: string | undefined
  /** The header fields by lower-case name. */
  readonly headers: EdgeHeaders
  /** Absent in requests that tests and serverless adapters construct. */
  readonly socket?:
    | {
        readonly remoteAddress?: string | undefined
        readonly destroyed?: boolean | undefined
        destroySoon?: (() => void) | undefined
      }
    | undefined
  /** The client address, for requests without a socket. */
  readonly ip?: string | undefined
  /** 1 for HTTP/1.x, 2 for HTTP/2. */
  readonly httpVersionMajor?: number | undefined
  /** True once the body has been received completely. */
  readonly complete?: boolean | undefined
}

/** The part of a response that is used. */
export interface NodeResponse {
  /** The status; set before a rejection is sent. */
  statusCode: number
  /** The connection; null while a pipelined response waits for earlier ones. */
  readonly socket?: unknown
  /** True after the connection was closed. */
  readonly destroyed?: boolean | undefined
  /** True after the head was sent. */
  readonly headersSent?: boolean | undefined
  /** True after `end` was called. */
  readonly writableEnded?: boolean | undefined
  /** HTTP/2 only. */
  readonly stream?: { readonly destroyed?: boolean | undefined } | undefined
  /** Returns a header field that was set before, so that several limits can share it. */
  getHeader(name: string): unknown
  /** Sets a header field. */
  setHeader(name: string, value: string | number): unknown
  /** Calls the listener when the response has been sent (`finish`) or its connection closes (`close`). */
  once(event: 'close' | 'finish', listener: () => void): unknown
  /** Sends the body and ends the response. */
  end(body: string): unknown
}

/** A request on which the decision is stored. */
interface LimitedRequest {
  rateLimit?: Decision
}

/** Caches the remote address on the socket, because Node asks the operating system on each access. */
const cachedAddress = Symbol('fluxgate.remoteAddress')

type CachingSocket = NonNullable<NodeRequest['socket']> & { [cachedAddress]?: string | undefined }

/** The edge request of a request of `node:http`. `url` and `ip` replace those of the request where the framework has better ones. */
export class NodeEdge<Response extends NodeResponse = NodeResponse> implements EdgeRequest {
  readonly request: NodeRequest
  readonly response: Response
  readonly method: string
  readonly url: string
  readonly headers: EdgeHeaders
  readonly remoteAddress: string | undefined

  constructor(request: NodeRequest, response: Response, ip?: string, url?: string) {
    const socket: CachingSocket | undefined = request.socket
    this.request = request
    this.response = response
    this.method = request.method ?? 'GET'
    this.url = url ?? request.originalUrl ?? request.url ?? '/'
    this.headers = request.headers
    if (socket === undefined) this.remoteAddress = ip ?? request.ip
    else {
      if (ip === undefined) socket[cachedAddress] ??= socket.remoteAddress
      this.remoteAddress = ip ?? socket[cachedAddress]
    }
  }

  signal(): AbortSignal {
    const { request, response } = this
    if (this.isAborted()) return AbortSignal.abort()
    // The response to a pipelined request has no socket until earlier responses are finished, and then does not emit `close`.
    return closeSignal(response.socket === null ? (request.socket as ClosingEmitter) : (response as ClosingEmitter))
  }

  onEnd(listener: () => void): void {
    const { request, response } = this
    if (response.destroyed || response.stream?.destroyed || request.socket?.destroyed) {
      listener()
      return
    }
    response.once('finish', listener)
    response.once('close', listener)
    // The response to a pipelined request does not emit `close` while it has no socket.
    if (response.socket !== null) return
    const closing = closeSignal(request.socket as ClosingEmitter)
    closing.addEventListener('abort', listener, { once: true })
    response.once('finish', () => closing.removeEventListener('abort', listener))
  }

  isAborted(): boolean {
    const { headersSent, writableEnded, destroyed, stream } = this.response
    return headersSent || writableEnded || destroyed || stream?.destroyed || this.request.socket?.destroyed || false
  }
}

/** Limits a request: calls `next` if it is allowed, or sends the rejection. Errors that `next` throws are not caught. */
export function limitNodeRequest<Request extends NodeRequest, Response extends NodeResponse>(
  guard: Guard<Request, Response>,
  request: Request,
  edge: NodeEdge<Response>,
  next: () => void,
  onError: (error: unknown) => void,
): void {
  const outcome = guard.admit(edge, request)
  if (outcome instanceof Promise)
    onAdmitted(
      outcome,
      () => edge.isAborted(),
      (late) => settle(guard, request, late, edge, next, onError),
      onError,
    )
  else settle(guard, request, outcome, edge, next, onError)
}

function settle<Request extends NodeRequest, Response extends NodeResponse>(
  guard: Guard<Request, Response>,
  request: Request,
  outcome: Outcome,
  { response }: NodeEdge<Response>,
  next: () => void,
  onError: (error: unknown) => void,
): void {
  if (outcome.kind === 'ABORTED') return
  try {
    setHeaders(response, outcome)
    if (outcome.decision !== undefined) (request as LimitedRequest).rateLimit = outcome.decision
    if (outcome.kind === 'REJECTED') {
      reject(guard, request, outcome, response, onError)
      return
    }
    if (guard.countsByResponse) countResponse(guard, request, outcome, response)
  } catch (error) {
    onError(error)
    return
  }
  next()
}

function reject<Request extends NodeRequest, Response extends NodeResponse>(
  { onRejected }: Guard<Request, Response>,
  request: Request,
  { status, body, decision }: Rejection,
  response: Response,
  onError: (error: unknown) => void,
): void {
  if (closesConnection(request)) response.setHeader('Connection', 'close')
  response.statusCode = status
  if (onRejected !== undefined && decision !== undefined) {
    Promise.resolve(onRejected(decision, request, response)).catch(onError)
    return
  }
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

/** Reports the status of the response once it has been sent completely. */
export function countResponse<Native>(
  guard: Guard<Native, never>,
  native: Native,
  outcome: Outcome,
  response: NodeResponse,
): void {
  response.once('finish', () => void guard.onResponse(outcome, response.statusCode, native))
}

/** Sets the headers of an outcome, together with those of earlier limits. */
export function setHeaders(response: NodeResponse, outcome: Exclude<Outcome, { kind: 'ABORTED' }>): void {
  const headers = mergeHeaders(outcome.headers, response, outcome.kind === 'REJECTED')
  for (const name in headers) response.setHeader(name, headers[name] as string)
}

interface FrameworkRequest {
  readonly ip?: string | undefined
  readonly app?: { readonly settings?: Readonly<Record<string, unknown>> | undefined } | undefined
}

/**
 * Returns `request.ip` if Express (`trust proxy`) or Fastify (`trustProxy`) trusts a proxy and the guard has no setting of its
 * own. Otherwise the address of the socket applies, which is cheaper to read. Only if Fastify trusts proxies do its requests
 * have `ips`.
 */
export function frameworkIp({ usesFrameworkIp }: Pick<Guard, 'usesFrameworkIp'>, request: object): string | undefined {
  if (!usesFrameworkIp) return undefined
  const { settings } = (request as FrameworkRequest).app ?? {}
  const isTrusting = settings === undefined ? 'ips' in request : Boolean(settings['trust proxy'])
  return isTrusting ? (request as FrameworkRequest).ip : undefined
}

/** After a rejection, the rest of a body up to this size is read and discarded, so that the connection can be kept. */
const maxDiscardedBytes = 65_536

/**
 * Returns true if the response to a rejected request must close the connection, because too much of its body may follow. Node
 * destroys such a socket right after the response. While the client is still sending, that resets the connection and the
 * client loses the response, so the socket is closed gracefully instead. HTTP/2 ends only the stream.
 */
export function closesConnection({ headers, complete, httpVersionMajor, socket }: NodeRequest): boolean {
  if (complete || httpVersionMajor !== 1 || socket === undefined) return false
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= maxDiscardedBytes)
    return false
  socket.destroySoon = () => linger(socket as Socket)
  return true
}
