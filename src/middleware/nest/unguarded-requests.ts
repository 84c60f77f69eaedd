/** Requests that reach no guard of Nest: those without a matching route, and preflight requests that CORS answers. */
import { type Outcome, onAdmitted } from '../../http/guard.js'
import { problemMediaType } from '../../http/problem-document.js'
import { frameworkIp, limitNodeRequest, NodeEdge, type NodeRequest, type NodeResponse } from '../edge/node-edge.js'
import {
  type FastifyHook,
  type FastifyReply,
  type FastifyRequest,
  limitReply,
  setHeaders,
} from '../fastify/request-hook.js'
import type { RouteGuard } from '../limits/route-limits.js'

type ExpressMiddleware = (request: NodeRequest, response: NodeResponse, next: (error?: unknown) => void) => void

/** The part of Nest's HTTP adapters that is used. */
export interface NestHttpAdapter {
  /** Returns `express` or `fastify`. */
  getType(): string
  /** Returns the application of the framework. */
  getInstance(): unknown
  /** Adds a middleware. */
  use(middleware: ExpressMiddleware): unknown
  /** Enables CORS. Preflight requests are answered before any guard runs, so they are limited separately. */
  enableCors(options?: unknown, ...more: unknown[]): unknown
  /** Sets the handler of requests without a route, which no guard sees. */
  setNotFoundHandler?(...args: unknown[]): unknown
}

/** A request of Node, with one property per limit that has counted it. */
export type CountedRequest = NodeRequest & Record<symbol, unknown>

/** A limit of the whole application. */
export interface ApplicationLimit<Request, Reply = unknown> {
  readonly main: RouteGuard<Request, Reply>
  /** The property of a request that contains the guard that counted it last, so that no guard counts it twice. */
  readonly countedBy: symbol
}

/** Limits the requests of an application that reach no guard. Ignores adapters of frameworks other than Express and Fastify. */
export function limitUnguarded<Request, Reply>(
  adapter: NestHttpAdapter,
  limit: ApplicationLimit<Request, Reply>,
): void {
  // `Request` and `Reply` are the types of the framework that the application runs on.
  if (adapter.getType() === 'express') limitExpress(adapter, limit as ApplicationLimit<unknown>)
  if (adapter.getType() === 'fastify')
    limitFastify(adapter.getInstance() as FastifyInstance, limit as ApplicationLimit<unknown>)
}

const limitsOf = new WeakMap<NestHttpAdapter, ApplicationLimit<unknown>[]>()

/**
 * Express runs middleware in the order of registration, and Nest has no hook right before it adds CORS or its 404 handler.
 * Therefore both methods of the adapter are replaced with ones that add the limits first.
 */
function limitExpress(adapter: NestHttpAdapter, limit: ApplicationLimit<unknown>): void {
  const known = limitsOf.get(adapter)
  if (known !== undefined) {
    known.push(limit)
    return
  }
  const limits = [limit]
  limitsOf.set(adapter, limits)
  const { enableCors, setNotFoundHandler } = adapter
  adapter.enableCors = (...args) => {
    if (!continuesPreflight(args[0])) for (const one of limits) adapter.use(limitUncounted(one, isOptions))
    return enableCors.apply(adapter, args)
  }
  adapter.setNotFoundHandler = (...args) => {
    for (const one of limits) adapter.use(limitUncounted(one, () => true))
    return setNotFoundHandler?.apply(adapter, args)
  }
}

/** CORS answers all OPTIONS requests, also those without the headers of a preflight request. */
const isOptions = ({ method }: NodeRequest): boolean => method === 'OPTIONS'

/** True if CORS leaves OPTIONS requests to the routes, which have guards. */
const continuesPreflight = (cors: unknown): boolean =>
  (cors as { preflightContinue?: unknown } | undefined)?.preflightContinue === true

function limitUncounted(
  { main, countedBy }: ApplicationLimit<unknown>,
  applies: (request: NodeRequest) => boolean,
): ExpressMiddleware {
  const { guard } = main
  return (request, response, next) => {
    const counted = request as CountedRequest
    if (counted[countedBy] !== undefined || !applies(request)) {
      next()
      return
    }
    counted[countedBy] = main
    limitNodeRequest(guard, request, new NodeEdge(request, response, frameworkIp(guard, request)), next, next)
  }
}

interface FastifyInstance {
  addHook(name: 'onRequest', hook: FastifyHook<RoutedRequest>): unknown
  addHook(name: 'onSend', hook: OnSend): unknown
}

type RoutedRequest = FastifyRequest & { readonly is404: boolean }

type OnSend = (
  request: RoutedRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (error: unknown, payload?: unknown) => void,
) => void

function limitFastify(app: FastifyInstance, { main, countedBy }: ApplicationLimit<unknown>): void {
  app.addHook('onRequest', (request, reply, done) => {
    const raw = request.raw as CountedRequest
    if (!request.is404 || raw[countedBy] !== undefined) {
      done()
      return
    }
    raw[countedBy] = main
    limitReply(main, request, reply, true, done)
  })
  // The adapter answers preflight requests in a hook before all hooks that can be added, and its routes may call the 404
  // handler before their guards. In `onSend`, neither response has been sent yet.
  app.addHook('onSend', (request, reply, payload, done) => {
    const raw = request.raw as CountedRequest
    if ((!isOptions(raw) && !request.is404) || raw[countedBy] !== undefined) {
      done(null, payload)
      return
    }
    raw[countedBy] = main
    const settle = (outcome: Outcome): void => done(null, limitedPayload(outcome, reply, payload))
    const edge = new NodeEdge(raw, reply.raw, frameworkIp(main.guard, request))
    const outcome = main.guard.admit(edge, request)
    if (outcome instanceof Promise) onAdmitted(outcome, () => edge.isAborted(), settle, done)
    else settle(outcome)
  })
}

/** The payload of an allowed request, or the body of the rejection. */
function limitedPayload(outcome: Outcome, reply: FastifyReply, payload: unknown): unknown {
  if (outcome.kind === 'ABORTED') return payload
  setHeaders(reply, outcome, true)
  if (outcome.kind === 'ALLOWED') return payload
  reply.code(outcome.status)
  // `onRejected` cannot be called here, because Fastify already sends this response. Its rejections have no content type.
  if (outcome.headers['Content-Type'] === undefined) reply.header('content-type', problemMediaType)
  return outcome.body
}
