/** Entry `fluxgate-js/express`: middleware for Express 4 and 5, connect and compatible frameworks. */
import { frameworkIp, limitNodeRequest, NodeEdge, type NodeRequest, type NodeResponse } from './edge/node-edge.js'
import { createGuard, type RateLimitOptions } from './limits/create-guard.js'

export type { ContextCustomizer } from '../http/guard-options.js'
export type { ExpressRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

/** A middleware for Express. */
interface ExpressRateLimit<Request extends NodeRequest> {
  (request: Request, response: NodeResponse, next: (error?: unknown) => void): void
  /** Rejects delayed requests with 503 and closes the store if the middleware opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limiting middleware. Rejected requests get 429 with a problem document; allowed ones get rate limit headers.
 *
 * @param options an inline rule such as `{ capacity, window }`, or `{ handler: gate }`, plus options of the HTTP edge
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * app.use(rateLimit({ capacity: 100, window: '1m' }))
 * @example
 * app.use(rateLimit({ handler: await createFluxGate({ rules: './rules.yaml' }) }))
 */
export function rateLimit<Request extends NodeRequest = NodeRequest>(
  options: RateLimitOptions<Request>,
): ExpressRateLimit<Request> {
  const { guard, close } = createGuard(options)
  const middleware = (request: Request, response: NodeResponse, next: (error?: unknown) => void): void =>
    limitNodeRequest(guard, request, new NodeEdge(request, response, frameworkIp(guard, request)), next, next)
  return Object.assign(middleware, { close })
}
