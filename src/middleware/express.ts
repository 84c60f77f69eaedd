/** Entry `fluxgate-js/express`: middleware for Express 4 and 5, connect and compatible frameworks. */
import { frameworkIp, limitNodeRequest, NodeEdge, type NodeRequest, type NodeResponse } from './edge/node-edge.js'
import { createGuard, type RateLimitOptions } from './limits/create-guard.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export type { ExpressRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

/** A middleware for Express. */
interface ExpressRateLimit<Request extends NodeRequest, Response extends NodeResponse = NodeResponse> {
  (request: Request, response: Response, next: (error?: unknown) => void): void
  /** Rejects delayed requests with 503 and closes the store if the middleware opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limiting middleware. Rejected requests get 429 with a problem document; allowed ones get rate limit headers.
 * The decision is in `request.rateLimit`.
 *
 * @param options an inline rule such as `{ capacity, window }`, or `{ gate }`, plus options of the HTTP edge
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * app.use(rateLimit({ capacity: 100, window: '1m' }))
 * @example
 * app.use(rateLimit({ gate: await createFluxGate({ rules: './rules.yaml' }) }))
 */
export function rateLimit<Request extends NodeRequest = NodeRequest, Response extends NodeResponse = NodeResponse>(
  options: RateLimitOptions<Request, Response>,
): ExpressRateLimit<Request, Response> {
  const { guard, close } = createGuard(options)
  const middleware = (request: Request, response: Response, next: (error?: unknown) => void): void =>
    limitNodeRequest(guard, request, new NodeEdge(request, response, frameworkIp(guard, request)), next, next)
  return Object.assign(middleware, { close })
}
