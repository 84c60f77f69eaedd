import { type Guard, type Outcome, onAdmitted } from '../../http/guard.js'
import { edgeOf, isSent, mayPass, type NodeRequest, type NodeResponse } from '../edge/node-edge.js'

export type NodeListener<Request, Response> = (request: Request, response: Response) => unknown

/** A listener of `node:http` that hears only of the requests that may pass. */
export function limitedListener<Request extends NodeRequest, Response extends NodeResponse>(
  guard: Guard<Request>,
  listener: NodeListener<Request, Response>,
): (request: Request, response: Response) => void {
  return (request, response) => {
    const onError = (error: unknown): void => fail(response, error)
    const settle = (outcome: Outcome): void => {
      let passes: boolean
      try {
        passes = mayPass(outcome, request, response)
      } catch (error) {
        onError(error)
        return
      }
      if (passes) listener(request, response)
    }
    const edge = edgeOf(request, response)
    onAdmitted(
      () => guard.admit(edge, request),
      () => edge.isGone(),
      settle,
      onError,
    )
  }
}

/** The operator gets the error as a warning of the process, the client an empty 500. */
function fail(response: NodeResponse, error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
  if (isSent(response)) return
  response.statusCode = 500
  response.setHeader('Connection', 'close')
  response.end('')
}
