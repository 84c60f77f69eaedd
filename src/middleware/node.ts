import type { Guard } from '../http/guard.js'
import { edgeOf, mayPass, type NodeRequest, type NodeResponse } from './node-edge.js'

export type NodeListener<Request, Response> = (request: Request, response: Response) => unknown

/** A listener of `node:http` that hears only of the requests that may pass. */
export function limitedListener<Request extends NodeRequest, Response extends NodeResponse>(
  guard: Guard<Request>,
  listener: NodeListener<Request, Response>,
): (request: Request, response: Response) => void {
  return (request, response) => {
    guard.admit(edgeOf(request, response), request).then(
      (outcome) => {
        // Called from outside the promise, so that what it throws is the uncaught exception that it would be without a limit.
        if (mayPass(outcome, request, response)) queueMicrotask(() => listener(request, response))
      },
      (error) => fail(response, error),
    )
  }
}

/** What went wrong is for whoever runs this, not for whoever asks. */
function fail(response: NodeResponse, error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
  response.statusCode = 500
  response.setHeader('Connection', 'close')
  response.end()
}
