/** Entry `fluxgate-js/hono`: middleware for Hono. */

import { type Guard, type Outcome, refundIfAborted } from '../http/guard.js'
import { mergeHeaders } from '../http/rate-limit-headers.js'
import type { Rejection } from '../http/rejection.js'
import type { Warnings } from '../validation/warnings.js'
import { fetchEdge, rejectionResponse, releaseAfter, warnOfMissingAddress, withHeaders } from './edge/fetch-edge.js'
import { closesConnection, countResponse, NodeEdge, type NodeRequest, type NodeResponse } from './edge/node-edge.js'
import { createGuard, type RateLimitOptions } from './limits/create-guard.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export type { HonoContext, HonoRateLimit, HonoRateLimitOptions, HonoRequest, RateLimitOptions }

/** The part of a Hono context that is used. */
interface HonoContext {
  /** The request, with the `Request` of the Fetch API in `raw`. */
  readonly req: HonoRequest
  /** The bindings of the runtime, which contain the socket in Node. */
  readonly env: unknown
  /** The response. */
  res: Response
  /** Stores the decision for `c.get('rateLimit')`. */
  set(key: string, value: unknown): unknown
  /** Sets the status. */
  status(status: never): unknown
  /** Sets a header field. */
  header(name: string, value: string): unknown
  /** Creates a response with a text. */
  text(text: string): Response
}

/** The part of a Hono request that is used, or that hooks often need. Annotate the context of a hook that needs more. */
interface HonoRequest {
  /** The request of the Fetch API. */
  readonly raw: Request
  /** The HTTP method. */
  readonly method: string
  /** The path of the URL. */
  readonly path: string
  /** Returns a header field. */
  header(name: string): string | undefined
  /** Returns a parameter of the query. */
  query(name: string): string | undefined
}

type Next = () => Promise<void>

/** Options of the middleware: the limit, and how requests are read and rejected. */
type HonoRateLimitOptions<Context extends HonoContext> = RateLimitOptions<Context, Context> & {
  /** Returns the socket's remote address, for runtimes other than `@hono/node-server`. */
  readonly remoteAddress?: ((context: Context) => string | undefined) | undefined
}

/** A middleware for Hono. */
interface HonoRateLimit<Context extends HonoContext> {
  (context: Context, next: Next): Promise<Response | undefined>
  /** Rejects delayed requests with 503 and closes the store if the middleware opened it. */
  close(): Promise<void>
}

/** The environment of a request in `@hono/node-server`. */
interface NodeBindings {
  readonly incoming?: NodeRequest | undefined
  readonly outgoing?: NodeResponse | undefined
  readonly server?: NodeBindings | undefined
}

const noBindings: NodeBindings = {}

/**
 * Creates a rate limiting middleware. Rejected requests get 429 with a problem document; allowed ones get rate limit headers.
 * The decision is in `c.get('rateLimit')`. Hooks receive the context; `onRejected` returns the response.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * app.use(rateLimit({ capacity: 100, window: '1m' }))
 */
export function rateLimit<Context extends HonoContext = HonoContext>(
  options: HonoRateLimitOptions<Context>,
): HonoRateLimit<Context> {
  const { remoteAddress: remoteAddressOf, ...others } = options ?? {}
  const { guard, warnings, close } = createGuard(options && (others as RateLimitOptions<Context, Context>))
  const middleware = (context: Context, next: Next): Promise<Response | undefined> => {
    const bindings = (context.env ?? noBindings) as NodeBindings
    const { incoming, outgoing } = bindings.server ?? bindings
    if (incoming === undefined || outgoing === undefined)
      return limitFetch(guard, warnings, remoteAddressOf?.(context), context, next)
    const edge = new NodeEdge(incoming, outgoing)
    const outcome = guard.admit(edge, context)
    return outcome instanceof Promise
      ? settleLater(guard, outcome, edge, context, next)
      : settle(guard, outcome, edge, context, next)
  }
  return Object.assign(middleware, { close })
}

const settleLater = async <Context extends HonoContext>(
  guard: Guard<Context, Context>,
  admitted: Promise<Outcome>,
  edge: NodeEdge,
  context: Context,
  next: Next,
) => settle(guard, refundIfAborted(await admitted, edge.isAborted()), edge, context, next)

/** The spelling of the Fetch API. Node would convert each name for every request, which costs more than the decision. */
const lowerCase: Readonly<Record<string, string>> = {
  'RateLimit-Policy': 'ratelimit-policy',
  RateLimit: 'ratelimit',
  'X-RateLimit-Limit': 'x-ratelimit-limit',
  'X-RateLimit-Remaining': 'x-ratelimit-remaining',
  'X-RateLimit-Reset': 'x-ratelimit-reset',
  'RateLimit-Limit': 'ratelimit-limit',
  'RateLimit-Remaining': 'ratelimit-remaining',
  'RateLimit-Reset': 'ratelimit-reset',
}

/** Sets the headers on the response of Node, because adding them to Hono's own response would copy it. */
function settle<Context extends HonoContext>(
  guard: Guard<Context, Context>,
  outcome: Outcome,
  { request, response }: NodeEdge,
  context: Context,
  next: Next,
): Promise<Response | undefined> {
  if (outcome.kind === 'ABORTED') return Promise.resolve(alreadySent())
  const headers = mergeHeaders(outcome.headers, response, outcome.kind === 'REJECTED')
  if (outcome.decision !== undefined) context.set('rateLimit', outcome.decision)
  if (outcome.kind === 'ALLOWED') {
    for (const name in headers) response.setHeader(lowerCase[name] ?? name, headers[name] as string)
    if (guard.countsByResponse) countResponse(guard, context, outcome, response)
    return next().then(nothing)
  }
  const connection = closesConnection(request) ? { Connection: 'close' } : {}
  return rejected(guard, { ...outcome, headers: { ...headers, ...connection } }, context, request.method ?? 'GET')
}

async function rejected<Context extends HonoContext>(
  { onRejected }: Guard<Context, Context>,
  rejection: Rejection,
  context: Context,
  method: string,
): Promise<Response> {
  const { status, headers, decision } = rejection
  if (onRejected === undefined || decision === undefined) return rejectionResponse(rejection, method)
  context.status(status as never)
  for (const name in headers) context.header(name, headers[name] as string)
  const response = (await onRejected(decision, context, context)) as Response | undefined
  return response ?? rejectionResponse(rejection, method)
}

/** A middleware that has called `next` returns nothing. */
const nothing = (): undefined => undefined

/**
 * Makes `@hono/node-server` write nothing. It writes instances of its own Response class in any case, so this is a native one,
 * which `clone` returns.
 */
const alreadySent = (): Response => new Response(null, { headers: { 'x-hono-already-sent': 'true' } }).clone()

async function limitFetch<Context extends HonoContext>(
  guard: Guard<Context, Context>,
  warnings: Warnings,
  remoteAddress: string | undefined,
  context: Context,
  next: Next,
) {
  const edge = fetchEdge(context.req.raw, remoteAddress)
  const outcome = refundIfAborted(await guard.admit(edge, context), context.req.raw.signal.aborted)
  const hint = 'Set remoteAddress, for example to (c) => getConnInfo(c).remote.address.'
  warnOfMissingAddress(outcome, remoteAddress, warnings, hint)
  if (outcome.kind === 'ABORTED') return rejectionResponse(outcome, edge.method)
  if (outcome.decision !== undefined) context.set('rateLimit', outcome.decision)
  if (outcome.kind === 'REJECTED') return rejected(guard, outcome, context, edge.method)
  try {
    await next()
  } catch (error) {
    outcome.release?.()
    throw error
  }
  const limited = withHeaders(context.res, outcome.headers)
  const response = outcome.release === undefined ? limited : releaseAfter(limited, outcome.release)
  if (response !== context.res) context.res = response
  if (guard.countsByResponse) await guard.onResponse(outcome, response.status, context)
  return undefined
}
