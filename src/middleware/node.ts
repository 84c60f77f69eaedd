/** Entry `fluxgate-js/node`: for `node:http` servers without a framework. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { limitedListener, type NodeListener } from './adapters/node.js'
import type { NodeRequest, NodeResponse } from './edge/node-edge.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { NodeListener, NodeRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

interface NodeRateLimit<Native extends NodeRequest> {
  /** Wraps a request listener, which then receives only allowed requests. */
  (listener: NodeListener<Native, ServerResponse>): (request: Native, response: ServerResponse) => void
  /** Wraps a listener of a compatible server such as `node:http2`. */
  <Request extends Native, Response extends NodeResponse>(
    listener: NodeListener<Request, Response>,
  ): (request: Request, response: Response) => void
  /** Rejects delayed requests with 503 and closes the store if the limit opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limit for `node:http` servers. Rejected requests get 429 with a problem document.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * const limit = rateLimit({ capacity: 100, window: '1m' })
 * createServer(limit((request, response) => response.end('hello'))).listen(3000)
 */
export function rateLimit<Native extends NodeRequest = IncomingMessage>(
  options: RateLimitOptions<Native>,
): NodeRateLimit<Native> {
  const { guard, close } = guardOf(options)
  const limit = <Request extends Native, Response extends NodeResponse>(listener: NodeListener<Request, Response>) =>
    limitedListener(guard, listener)
  return Object.assign(limit, { close })
}
