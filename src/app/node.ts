/** `fluxgate/node`: servers of node:http, without a framework. */
import { limitedListener, type NodeListener } from '../middleware/node.js'
import type { NodeRequest, NodeResponse } from '../middleware/node-edge.js'
import { guardOf, type RateLimitOptions } from './guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { NodeListener, NodeRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

interface NodeRateLimit<Native extends NodeRequest> {
  /** A listener that hears only of the requests that may pass. */
  <Request extends Native, Response extends NodeResponse>(
    listener: NodeListener<Request, Response>,
  ): (request: Request, response: Response) => void
  /** Refuses those who are held, and closes what was made for this limit. */
  close(): Promise<void>
}

export function rateLimit<Native extends NodeRequest = NodeRequest>(
  options: RateLimitOptions<Native>,
): NodeRateLimit<Native> {
  const { guard, close } = guardOf(options)
  const limit = <Request extends Native, Response extends NodeResponse>(listener: NodeListener<Request, Response>) =>
    limitedListener(guard, listener)
  return Object.assign(limit, { close })
}
