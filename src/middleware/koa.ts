/** Entry `fluxgate-js/koa`: middleware for Koa. */
import { refundIfAborted } from '../http/guard.js'
import {
  closesConnection,
  countResponse,
  NodeEdge,
  type NodeRequest,
  type NodeResponse,
  setHeaders,
} from './edge/node-edge.js'
import { createGuard, type RateLimitOptions } from './limits/create-guard.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export type { KoaContext, KoaRateLimit, RateLimitOptions }

/** The part of a Koa context that is used. */
interface KoaContext {
  /** The request of Node. */
  readonly req: NodeRequest
  /** The response of Node. */
  readonly res: NodeResponse
  /** The request target as received; mounting does not change it. */
  readonly originalUrl: string
  /** Properties that middlewares share. The decision is in `rateLimit`. */
  // biome-ignore lint/suspicious/noExplicitAny: the type of the state is defined by the application
  state: any
  /** The status of the response. */
  status: number
  /** The body of the response. */
  body: unknown
  /** False if Koa must not send the response, because the client has disconnected. */
  respond?: boolean | undefined
  /** Sets header fields. */
  set(headers: { [name: string]: string }): unknown
}

/** A middleware for Koa. */
interface KoaRateLimit<Context extends KoaContext> {
  (context: Context, next: () => Promise<unknown>): Promise<unknown>
  /** Rejects delayed requests with 503 and closes the store if the middleware opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limiting middleware. Rejected requests get 429 with a problem document; allowed ones get rate limit headers.
 * The decision is in `ctx.state.rateLimit`. Hooks receive the context, `onRejected` as request and as reply.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * app.use(rateLimit({ capacity: 100, window: '1m' }))
 */
export function rateLimit<Context extends KoaContext = KoaContext>(
  options: RateLimitOptions<Context, Context>,
): KoaRateLimit<Context> {
  const { guard, close } = createGuard(options)
  const middleware = async (context: Context, next: () => Promise<unknown>): Promise<unknown> => {
    const { req, res, originalUrl } = context
    const edge = new NodeEdge(req, res, undefined, originalUrl)
    const admitted = guard.admit(edge, context)
    const outcome = admitted instanceof Promise ? refundIfAborted(await admitted, edge.isAborted()) : admitted
    if (outcome.kind === 'ABORTED') {
      context.respond = false
      return
    }
    setHeaders(res, outcome)
    if (outcome.decision !== undefined) context.state.rateLimit = outcome.decision
    if (outcome.kind === 'ALLOWED') {
      if (guard.countsByResponse) countResponse(guard, context, outcome, res)
      try {
        return await next()
      } catch (error) {
        keepHeaders(error, Object.keys(outcome.headers), res)
        throw error
      }
    }
    if (closesConnection(req)) context.set({ Connection: 'close' })
    context.status = outcome.status
    if (guard.onRejected !== undefined && outcome.decision !== undefined)
      await guard.onRejected(outcome.decision, context, context)
    else context.body = outcome.body
  }
  return Object.assign(middleware, { close })
}

/** Koa removes all headers from the response to an error and then sets those of the error. */
function keepHeaders(error: unknown, names: readonly string[], res: NodeResponse): void {
  if (!(error instanceof Error) || !Object.isExtensible(error) || names.length === 0) return
  const values = names.map((name) => [name, res.getHeader(name)] as const)
  const kept = Object.fromEntries(values.filter(([, value]) => value !== undefined))
  const { headers } = error as { headers?: object }
  Object.assign(error, { headers: { ...headers, ...kept } })
}
