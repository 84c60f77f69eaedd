/** `fluxgate-js/node`: servers of node:http, without a framework. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { limitedListener, type NodeListener } from './adapters/node.js'
import type { NodeRequest, NodeResponse } from './edge/node-edge.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { NodeListener, NodeRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

interface NodeRateLimit<Native extends NodeRequest> {
  /** A listener that hears only of the requests that may pass. */
  (listener: NodeListener<Native, ServerResponse>): (request: Native, response: ServerResponse) => void
  /** The same for others than those of `node:http`, such as those of `node:http2`. */
  <Request extends Native, Response extends NodeResponse>(
    listener: NodeListener<Request, Response>,
  ): (request: Request, response: Response) => void
  /** Refuses those who are held, and closes what was made for this limit. */
  close(): Promise<void>
}

export function rateLimit<Native extends NodeRequest = IncomingMessage>(
  options: RateLimitOptions<Native>,
): NodeRateLimit<Native> {
  const { guard, close } = guardOf(options)
  const limit = <Request extends Native, Response extends NodeResponse>(listener: NodeListener<Request, Response>) =>
    limitedListener(guard, listener)
  return Object.assign(limit, { close })
}
