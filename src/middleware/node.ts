import type { Guard, Outcome } from '../http/guard.js'
import { edgeOf, mayPass, type NodeRequest, type NodeResponse } from './node-edge.js'

export type NodeListener<Request, Response> = (request: Request, response: Response) => unknown

/** A listener of `node:http` that hears only of the requests that may pass. */
export function limitedListener<Request extends NodeRequest, Response extends NodeResponse>(
  guard: Guard<Request>,
  listener: NodeListener<Request, Response>,
): (request: Request, response: Response) => void {
  return (request, response) => {
    const settle = (outcome: Outcome): void => {
      if (mayPass(outcome, request, response)) listener(request, response)
    }
    guard.admitThen(edgeOf(request, response), request, undefined, settle, (error) => fail(response, error))
  }
}

/** What went wrong is for whoever runs this, not for whoever asks. */
function fail(response: NodeResponse, error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
  response.statusCode = 500
  response.setHeader('Connection', 'close')
  response.end('')
}
