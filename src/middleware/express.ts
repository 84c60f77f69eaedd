/** `fluxgate-js/express`: Express 4 and 5, connect, and whatever else takes `(request, response, next)`. */
import { type ExpressMiddleware, expressMiddleware } from './adapters/express.js'
import type { NodeRequest, NodeResponse } from './edge/node-edge.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { ExpressRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

type ExpressRateLimit<Request extends NodeRequest> = ExpressMiddleware<Request> & {
  /** Refuses those who are held, and closes what was made for this middleware. */
  close(): Promise<void>
}

export function rateLimit<Request extends NodeRequest = NodeRequest>(
  options: RateLimitOptions<Request>,
): ExpressRateLimit<Request> {
  const { guard, close } = guardOf(options)
  return Object.assign(expressMiddleware(guard), { close })
}
