/** Requests that reach no guard of Nest: those that no route takes, and preflight requests that CORS answers. */
import { type Outcome, onAdmitted } from '../../http/guard.js'
import { stackedHeaders } from '../../http/headers/stacked-headers.js'
import type { Place } from '../../http/place.js'
import type { NodeRequest } from '../edge/node-edge.js'
import { type ExpressMiddleware, expressMiddleware } from './express.js'
import { ask, edgeOfReply, type FastifyHook, type FastifyReply, type FastifyRequest, setHeaders } from './fastify.js'
import type { DecidedRequest, NestRequest } from './nest.js'

/** As much of Nest's HTTP adapters as is needed. */
export interface NestHttpAdapter {
  getType(): string
  getInstance(): unknown
  use(middleware: ExpressMiddleware<NodeRequest>): unknown
  enableCors(options?: unknown, ...more: unknown[]): unknown
  setNotFoundHandler?(...given: unknown[]): unknown
}

/** A limit of the whole application. */
export interface UnguardedLimit<Request> {
  readonly place: Place<Request>
  /** As in `canActivate`. */
  readonly decided: symbol
}

/** Limits the requests of this application that reach no guard. Adapters of other frameworks than these two are left alone. */
export function limitUnguarded<Request extends NestRequest>(
  adapter: NestHttpAdapter,
  limit: UnguardedLimit<Request>,
): void {
  // The options of an application name the request type of the framework that it runs on.
  if (adapter.getType() === 'express') limitExpress(adapter, limit as UnguardedLimit<unknown>)
  if (adapter.getType() === 'fastify')
    limitFastify(adapter.getInstance() as FastifyInstance, limit as UnguardedLimit<unknown>)
}

const limitsOf = new WeakMap<NestHttpAdapter, UnguardedLimit<unknown>[]>()

/**
 * Express runs middleware in the order in which it is added, and Nest has no hook right before it adds CORS or its handler
 * of 404. So both methods of this adapter add the limits first.
 */
function limitExpress(adapter: NestHttpAdapter, limit: UnguardedLimit<unknown>): void {
  const known = limitsOf.get(adapter)
  if (known !== undefined) {
    known.push(limit)
    return
  }
  const limits = [limit]
  limitsOf.set(adapter, limits)
  const { enableCors, setNotFoundHandler } = adapter
  adapter.enableCors = (...given) => {
    if (!leavesPreflight(given[0])) for (const one of limits) adapter.use(unlessDecided(one, isOptions))
    return enableCors.apply(adapter, given)
  }
  adapter.setNotFoundHandler = (...given) => {
    for (const one of limits) adapter.use(unlessDecided(one, () => true))
    return setNotFoundHandler?.apply(adapter, given)
  }
}

/** CORS answers all OPTIONS requests, also those without the headers of a preflight request. */
const isOptions = ({ method }: NodeRequest): boolean => method === 'OPTIONS'

/** True if CORS leaves OPTIONS requests to the routes, which have guards. */
const leavesPreflight = (cors: unknown): boolean =>
  (cors as { preflightContinue?: unknown } | undefined)?.preflightContinue === true

function unlessDecided(
  { place, decided }: UnguardedLimit<unknown>,
  isMeant: (request: NodeRequest) => boolean,
): ExpressMiddleware<NodeRequest> {
  const limit = expressMiddleware<NodeRequest>(place.guard)
  return (request, response, next) => {
    const marked = request as DecidedRequest
    if (marked[decided] !== undefined || !isMeant(request)) {
      next()
      return
    }
    marked[decided] = place
    limit(request, response, next)
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

function limitFastify(app: FastifyInstance, { place, decided }: UnguardedLimit<unknown>): void {
  app.addHook('onRequest', (request, reply, done) => {
    const raw = request.raw as DecidedRequest
    if (!request.is404 || raw[decided] !== undefined) {
      done()
      return
    }
    raw[decided] = place
    ask(place, request, reply, true, done)
  })
  // The adapter answers preflight requests in a hook in front of all that can be added, and has routes that call the handler
  // of 404 in front of their guards. Neither response has been sent yet.
  app.addHook('onSend', (request, reply, payload, done) => {
    const raw = request.raw as DecidedRequest
    if ((!isOptions(raw) && !request.is404) || raw[decided] !== undefined) {
      done(null, payload)
      return
    }
    raw[decided] = place
    const settle = (outcome: Outcome): void => done(null, payloadOf(outcome, reply, payload))
    const edge = edgeOfReply(place, request, reply)
    onAdmitted(
      () => place.guard.admit(edge, request),
      () => edge.isGone(),
      settle,
      done,
    )
  })
}

/** What is sent: the payload, or the rejection. */
function payloadOf(outcome: Outcome, reply: FastifyReply, payload: unknown): unknown {
  if (outcome.kind === 'GONE') return payload
  const isRefusal = outcome.kind === 'REFUSE'
  setHeaders(reply, stackedHeaders(outcome.headers, reply, isRefusal), isRefusal)
  if (!isRefusal) return payload
  reply.code(outcome.status)
  return outcome.body
}
