import { type Guard, type Outcome, onAdmitted } from '../../http/guard.js'
import { edgeOf, frameworkAddress, mayPass, type NodeRequest, type NodeResponse } from '../edge/node-edge.js'

/** For Express, and for whatever else takes `(request, response, next)`. */
export type ExpressMiddleware<Request extends NodeRequest> = (
  request: Request,
  response: NodeResponse,
  next: (error?: unknown) => void,
) => void

export function expressMiddleware<Request extends NodeRequest>(guard: Guard<Request>): ExpressMiddleware<Request> {
  return (request, response, next) => {
    const settle = (outcome: Outcome): void => {
      let passes: boolean
      try {
        passes = mayPass(outcome, request, response)
      } catch (error) {
        next(error)
        return
      }
      // Outside the try block: an error of the application must not call `next` a second time.
      if (passes) next()
    }
    const address = guard.followsFramework ? frameworkAddress(request) : undefined
    const edge = edgeOf(request, response, undefined, address)
    onAdmitted(
      () => guard.admit(edge, request),
      () => edge.isGone(),
      settle,
      next,
    )
  }
}
