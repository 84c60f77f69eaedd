/** Entry `fluxgate-js/node`: for `node:http` servers without a framework. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { limitNodeRequest, NodeEdge, type NodeRequest, type NodeResponse } from './edge/node-edge.js'
import { createGuard, type RateLimitOptions } from './limits/create-guard.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export type { NodeListener, NodeRateLimit, NodeRequest, NodeResponse, RateLimitOptions }

/** A listener of the `request` event. */
type NodeListener<Request, Response> = (request: Request, response: Response) => unknown

/** A rate limiter for `node:http` servers. */
interface NodeRateLimit<Native extends NodeRequest, Reply extends NodeResponse> {
  /** Wraps a request listener, which then receives only allowed requests. */
  (listener: NodeListener<Native, Reply>): (request: Native, response: Reply) => void
  /** Wraps a listener of a compatible server such as `node:http2`. */
  <Request extends Native, Response extends NodeResponse>(
    listener: NodeListener<Request, Response>,
  ): (request: Request, response: Response) => void
  /** Rejects delayed requests with 503 and closes the store if the limit opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limit for `node:http` servers. Rejected requests get 429 with a problem document; allowed ones get rate limit
 * headers. The decision is in `request.rateLimit`. If a hook or the handler fails, the client gets an empty 500 and the process
 * a warning with the error.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * const limit = rateLimit({ capacity: 100, window: '1m' })
 * createServer(limit((request, response) => response.end('hello'))).listen(3000)
 */
export function rateLimit<Native extends NodeRequest = IncomingMessage, Reply extends NodeResponse = ServerResponse>(
  options: RateLimitOptions<Native, Reply>,
): NodeRateLimit<Native, Reply> {
  // A listener of a compatible server gets responses of that server, and so does `onRejected`.
  const { guard, close } = createGuard(options as RateLimitOptions<Native, NodeResponse>)
  const limit =
    <Request extends Native, Response extends NodeResponse>(listener: NodeListener<Request, Response>) =>
    (request: Request, response: Response): void => {
      const edge = new NodeEdge(request, response)
      const next = (): void => void listener(request, response)
      limitNodeRequest(guard, request, edge, next, (error) => fail(edge, error))
    }
  return Object.assign(limit, { close })
}

function fail(edge: NodeEdge, error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
  if (edge.isAborted()) return
  const { response } = edge
  response.statusCode = 500
  response.setHeader('Connection', 'close')
  response.end('')
}
