import type { Decision } from '../../core/decision.js'
import type { EdgeHeaders } from '../../http/edge-request.js'
import { type Guard, type Outcome, onAdmitted } from '../../http/guard.js'
import { mergeHeaders } from '../../http/rate-limit-headers.js'
import {
  closesConnection,
  countResponse,
  frameworkIp,
  NodeEdge,
  type NodeRequest,
  type NodeResponse,
} from '../edge/node-edge.js'
import type { RouteGuard } from '../limits/route-limits.js'

/** The part of a Fastify request that is used. */
export interface FastifyRequest {
  /** The request of Node. */
  readonly raw: NodeRequest
  /** The HTTP method. */
  readonly method: string
  /** The request target: path and query. */
  readonly url: string
  /** The header fields by lower-case name. */
  readonly headers: EdgeHeaders
  /** The options of the matched route. */
  readonly routeOptions: FastifyRoute
  /** The decision about the request; undefined if it was not counted. */
  rateLimit?: Decision
}

/** The part of the options of a route that is used. */
export interface FastifyRoute {
  /** The `config` of the route; its `rateLimit` is the limit of the route. */
  readonly config?: object | undefined
  /** The handler of the route. */
  readonly handler?: unknown
  /** Version and host constraints, which distinguish routes with the same URL. */
  readonly constraints?: object | undefined
  /** True if Fastify adds a HEAD route to this GET route. */
  readonly exposeHeadRoute?: boolean | undefined
  /** The methods of the route. */
  readonly method?: string | string[] | undefined
  /** The URL pattern of the route. */
  readonly url?: string | undefined
}

/** The part of a Fastify reply that is used. */
export interface FastifyReply {
  /** The response of Node. */
  readonly raw: NodeResponse
  /** True if the reply was sent or hijacked. */
  readonly sent?: boolean | undefined
  /** Returns a header field that was set before. */
  getHeader(name: string): unknown
  /** Sets a header field. */
  header(name: string, value: string): unknown
  /** Sets the status. */
  code(status: number): unknown
  /** Sends the body. */
  send(body: unknown): unknown
  /** Prevents Fastify from sending a reply, because the client has disconnected. */
  hijack(): unknown
}

/** Takes `done` instead of being async: Fastify then creates no promise per request. */
export type FastifyHook<Request> = (request: Request, reply: FastifyReply, done: (error?: Error) => void) => void

/**
 * Limits a request: calls `done` if it is allowed, or sends the rejection. Does nothing if the reply was already sent.
 * `isStacked` is true if an earlier limit may have set headers on the reply.
 */
export function limitReply<Request extends FastifyRequest>(
  { guard, overrides }: RouteGuard<Request, FastifyReply>,
  request: Request,
  reply: FastifyReply,
  isStacked: boolean,
  done: (error?: Error) => void,
): void {
  if (reply.sent) return
  const edge = new NodeEdge(request.raw, reply.raw, frameworkIp(guard, request))
  const outcome = guard.admit(edge, request, overrides)
  if (!(outcome instanceof Promise)) {
    settle(guard, outcome, request, reply, isStacked, done, done)
    return
  }
  const isAborted = (): boolean => reply.sent === true || edge.isAborted()
  const fail = (error: unknown): void => {
    // Fastify throws if it has to send an error after the response was sent without it. After `hijack` it only warns.
    if (isAborted()) reply.hijack()
    done(error as Error)
  }
  onAdmitted(outcome, isAborted, (late) => settle(guard, late, request, reply, isStacked, done, fail), fail)
}

function settle<Request extends FastifyRequest>(
  guard: Guard<Request, FastifyReply>,
  outcome: Outcome,
  request: Request,
  reply: FastifyReply,
  isStacked: boolean,
  done: (error?: Error) => void,
  fail: (error: Error) => void,
): void {
  if (outcome.kind === 'ABORTED') {
    reply.hijack()
    return
  }
  setHeaders(reply, outcome, isStacked)
  if (outcome.decision !== undefined) request.rateLimit = outcome.decision
  if (outcome.kind === 'ALLOWED') {
    if (guard.countsByResponse) countResponse(guard, request, outcome, reply.raw)
    done()
    return
  }
  const { status, body, decision } = outcome
  if (closesConnection(request.raw)) reply.header('connection', 'close')
  reply.code(status)
  const { onRejected } = guard
  // Async, because Fastify does not catch what a hook throws synchronously.
  if (onRejected !== undefined && decision !== undefined)
    (async () => onRejected(decision, request, reply))().catch(fail)
  // Fastify would add a charset to a string, which problem documents do not have.
  else reply.send(Buffer.from(body))
}

/** Sets the headers one by one, in lower case as Fastify stores them: converting the names would cost more than the decision. */
export function setHeaders(
  reply: FastifyReply,
  outcome: Exclude<Outcome, { kind: 'ABORTED' }>,
  isStacked: boolean,
): void {
  const isRejection = outcome.kind === 'REJECTED'
  const headers = isStacked ? mergeHeaders(outcome.headers, reply, isRejection) : outcome.headers
  if (headers['RateLimit-Policy'] !== undefined) reply.header('ratelimit-policy', headers['RateLimit-Policy'])
  if (headers.RateLimit !== undefined) reply.header('ratelimit', headers.RateLimit)
  if (headers['X-RateLimit-Remaining'] !== undefined) {
    reply.header('x-ratelimit-limit', headers['X-RateLimit-Limit'] as string)
    reply.header('x-ratelimit-remaining', headers['X-RateLimit-Remaining'])
    reply.header('x-ratelimit-reset', headers['X-RateLimit-Reset'] as string)
  }
  if (headers['RateLimit-Remaining'] !== undefined) {
    reply.header('ratelimit-limit', headers['RateLimit-Limit'] as string)
    reply.header('ratelimit-remaining', headers['RateLimit-Remaining'])
    reply.header('ratelimit-reset', headers['RateLimit-Reset'] as string)
  }
  if (!isRejection) return
  if (headers['Retry-After'] !== undefined) reply.header('retry-after', headers['Retry-After'])
  if (headers['Content-Type'] !== undefined) reply.header('content-type', headers['Content-Type'])
}
