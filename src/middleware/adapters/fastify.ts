import type { EdgeHeaders } from '../../http/edge-request.js'
import { type Outcome, onAdmitted } from '../../http/guard.js'
import { stackedHeaders } from '../../http/headers/stacked-headers.js'
import type { LimitScope, Place, PlaceOf } from '../../http/place.js'
import {
  closesUnread,
  edgeOf,
  frameworkAddress,
  isSent,
  type NodeEdge,
  type NodeRequest,
  type NodeResponse,
} from '../edge/node-edge.js'
import type { FastifyScopes } from './fastify-scopes.js'

export interface FastifyRequest {
  readonly raw: NodeRequest
  readonly method: string
  readonly url: string
  readonly headers: EdgeHeaders
  readonly routeOptions: FastifyRoute
}

export interface FastifyRoute {
  readonly config?: object | undefined
  readonly handler?: unknown
  readonly constraints?: object | undefined
  readonly exposeHeadRoute?: boolean | undefined
  readonly method?: string | string[] | undefined
  readonly url?: string | undefined
}

export interface FastifyReply {
  readonly raw: NodeResponse
  /** True if the reply was sent or hijacked. */
  readonly sent?: boolean | undefined
  getHeader(name: string): unknown
  header(name: string, value: string): unknown
  code(status: number): unknown
  send(body: Buffer): unknown
  hijack(): unknown
}

export type FastifyHook<Request> = (request: Request, reply: FastifyReply, done: (error?: Error) => void) => void

/** Of an application. */
export interface FastifyRoutes {
  /** Whether any of them may say something about limits. */
  readonly maySpeak: boolean
  readonly scopes: FastifyScopes
}

/**
 * An `onRequest` hook. Not an async function: Fastify calls those that take `done` without a promise of its own. Nor has it
 * functions inside, for which every request would pay. `isStacked`: another limit may have spoken on a reply before.
 */
export function fastifyHook<Request extends FastifyRequest>(
  placeOf: PlaceOf<Request>,
  routes: FastifyRoutes,
  isStacked: boolean,
): FastifyHook<Request> {
  return (request, reply, done) => {
    // What is thrown here is the hook's, which Fastify handles.
    const place = routes.maySpeak
      ? placeOfRoute(placeOf, request.routeOptions, routes.scopes)
      : placeOf(undefined, noScope)
    if (place === undefined) {
      done()
      return
    }
    ask(place, request, reply, isStacked, done)
  }
}

/** Calls `done` if the request may pass. Otherwise the rejection is sent, or nothing if the reply was sent before. */
export function ask<Request extends FastifyRequest>(
  place: Place<Request>,
  request: Request,
  reply: FastifyReply,
  isStacked: boolean,
  done: (error?: Error) => void,
): void {
  if (reply.sent) return
  const { raw } = request
  const isGone = (): boolean => reply.sent === true || isSent(reply.raw) || raw.socket.destroyed === true
  const onOutcome = (outcome: Outcome): void => settle(outcome, raw, reply, isStacked, done)
  const onError = (error: unknown): void => {
    // Fastify throws if it has to send an error on a response that was sent without it. After `hijack` it only warns.
    if (isGone()) reply.hijack()
    done(error as Error)
  }
  const admit = () => place.guard.admit(edgeOfReply(place, request, reply), request, place.overrides)
  onAdmitted(admit, isGone, onOutcome, onError)
}

export function edgeOfReply<Request extends FastifyRequest>(
  { guard }: Place<Request>,
  request: Request,
  reply: FastifyReply,
): NodeEdge {
  return edgeOf(request.raw, reply.raw, undefined, guard.followsFramework ? frameworkAddress(request) : undefined)
}

/** Of what a route says about itself. */
export function placeOfRoute<Request>(
  placeOf: PlaceOf<Request>,
  route: FastifyRoute,
  scopes: FastifyScopes,
): Place<Request> | undefined {
  return placeOf(limitOf(route), () => scopes.of(route))
}

/** Not called: where no route has a limit of its own there is no scope. */
const noScope = (): LimitScope => ({ name: '', identity: '' })

/** What a route says about its limit; undefined if it says nothing. */
export const limitOf = ({ config }: FastifyRoute): unknown => (config as { rateLimit?: unknown } | undefined)?.rateLimit

function settle(outcome: Outcome, raw: NodeRequest, reply: FastifyReply, isStacked: boolean, done: () => void): void {
  if (outcome.kind === 'GONE') {
    reply.hijack()
    return
  }
  const isRefusal = outcome.kind === 'REFUSE'
  setHeaders(reply, isStacked ? stackedHeaders(outcome.headers, reply, isRefusal) : outcome.headers, isRefusal)
  if (outcome.kind === 'PASS') done()
  else {
    if (closesUnread(raw)) reply.header('connection', 'close')
    reply.code(outcome.status)
    // Text would be sent with a charset, which a problem has not.
    reply.send(Buffer.from(outcome.body))
  }
}

/** One by one, in lower case as Fastify keeps them: names that are looked up or made anew would cost more than the decision. */
export function setHeaders(reply: FastifyReply, headers: Readonly<Record<string, string>>, isRefusal: boolean): void {
  if (headers['RateLimit-Policy'] !== undefined) reply.header('ratelimit-policy', headers['RateLimit-Policy'])
  if (headers.RateLimit !== undefined) reply.header('ratelimit', headers.RateLimit)
  if (headers['X-RateLimit-Remaining'] !== undefined) {
    reply.header('x-ratelimit-limit', headers['X-RateLimit-Limit'] as string)
    reply.header('x-ratelimit-remaining', headers['X-RateLimit-Remaining'])
    reply.header('x-ratelimit-reset', headers['X-RateLimit-Reset'] as string)
  }
  if (!isRefusal) return
  if (headers['Retry-After'] !== undefined) reply.header('retry-after', headers['Retry-After'])
  reply.header('content-type', headers['Content-Type'] as string)
}
