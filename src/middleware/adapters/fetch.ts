import { type Guard, unlessGone } from '../../http/guard.js'
import { fetchEdgeOf, rejectionResponse, withHeaders } from '../edge/fetch-edge.js'

/** From where a request came; the runtime knows, its `Request` does not. */
export interface FetchOrigin {
  readonly remoteAddress?: string | undefined
}

export type RemoteAddressOf = (request: Request, ...rest: never[]) => string | undefined

export interface FetchLimit {
  /** The answer to a request that may not pass, else null. */
  (request: Request, origin?: FetchOrigin): Promise<Response | null>
  /** A handler that is called only for requests that may pass, and whose responses tell of the limit. */
  wrap<Rest extends unknown[]>(
    handler: (request: Request, ...rest: Rest) => Response | Promise<Response>,
  ): (request: Request, ...rest: Rest) => Promise<Response>
}

export function fetchLimit(guard: Guard<Request>, remoteAddressOf: RemoteAddressOf | undefined): FetchLimit {
  const admit = async (request: Request, rest: readonly unknown[]) => {
    const address = remoteAddressOf?.(request, ...(rest as never[])) ?? addressIn(rest[0])
    const outcome = await guard.admit(fetchEdgeOf(request, address), request)
    return unlessGone(outcome, request.signal.aborted)
  }
  const limit = async (request: Request, origin?: FetchOrigin): Promise<Response | null> => {
    const outcome = await admit(request, [origin])
    return outcome.kind === 'PASS' ? null : rejectionResponse(outcome, request.method)
  }
  const wrap: FetchLimit['wrap'] =
    (handler) =>
    async (request, ...rest) => {
      const outcome = await admit(request, rest)
      if (outcome.kind !== 'PASS') return rejectionResponse(outcome, request.method)
      return withHeaders(await handler(request, ...rest), outcome.headers)
    }
  return Object.assign(limit, { wrap })
}

function addressIn(origin: unknown): string | undefined {
  const address = (origin as FetchOrigin | null | undefined)?.remoteAddress
  return typeof address === 'string' ? address : undefined
}
