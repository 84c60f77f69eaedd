/** Entry `fluxgate-js/fetch`: for servers that map a `Request` to a `Response`. */
import { FluxGateError } from '../core/errors.js'
import { type Outcome, refundIfAborted } from '../http/guard.js'
import { fetchEdge, rejectionResponse, releaseAfter, warnOfMissingAddress, withHeaders } from './edge/fetch-edge.js'
import { createGuard, type RateLimitOptions } from './limits/create-guard.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export type { FetchOrigin, FetchRateLimit, FetchRateLimitOptions, RateLimitOptions, RemoteAddressOf }

/** The origin of a request, which the runtime knows but the `Request` does not contain. */
interface FetchOrigin {
  /** The remote address of the socket, with or without a port. */
  readonly remoteAddress?: string | undefined
}

/** Returns the remote address of the socket. `rest` are the further arguments that the runtime passes to a handler. */
type RemoteAddressOf = (request: Request, ...rest: never[]) => string | undefined

/** Options of the rate limiter: the limit, and how requests are read and rejected. */
type FetchRateLimitOptions = RateLimitOptions<Request, Response> & {
  /** Returns the socket's remote address from the arguments that the runtime passes to a wrapped handler. */
  readonly remoteAddress?: RemoteAddressOf | undefined
}

/** A rate limiter for handlers of `Request` and `Response`. */
interface FetchRateLimit {
  /**
   * Resolves with the response to a rejected request, or with null if the request is allowed. Rejects if `countWhen` is set,
   * which needs the response to allowed requests: use `wrap`.
   */
  (request: Request, origin?: FetchOrigin): Promise<Response | null>
  /** Wraps a handler, which then receives only allowed requests. Its responses get rate limit headers. */
  wrap<Rest extends unknown[]>(
    handler: (request: Request, ...rest: Rest) => Response | Promise<Response>,
  ): (request: Request, ...rest: Rest) => Promise<Response>
  /** Rejects delayed requests with 503 and closes the store if the limit opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limit for fetch-style handlers. Call it with a request to get a 429 response or null, or wrap a handler.
 * `onRejected` receives the default response as its reply, and returns the response to send.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * const limit = rateLimit({ capacity: 100, window: '1m' })
 * export default { fetch: limit.wrap((request) => new Response('hello')) }
 */
export function rateLimit(options: FetchRateLimitOptions): FetchRateLimit {
  const { remoteAddress: remoteAddressOf, ...others } = options ?? {}
  const { guard, warnings, close } = createGuard(options && (others as RateLimitOptions<Request, Response>))
  const admit = async (request: Request, rest: readonly unknown[]) => {
    const address = remoteAddressOf?.(request, ...(rest as never[])) ?? remoteAddressIn(rest[0])
    const outcome = await guard.admit(fetchEdge(request, address), request)
    warnOfMissingAddress(outcome, address, warnings, 'Pass { remoteAddress } with the request, or set remoteAddress.')
    return refundIfAborted(outcome, request.signal.aborted)
  }
  const reject = async (outcome: Exclude<Outcome, { kind: 'ALLOWED' }>, request: Request): Promise<Response> => {
    const response = rejectionResponse(outcome, request.method)
    if (guard.onRejected === undefined || outcome.kind === 'ABORTED' || outcome.decision === undefined) return response
    const own = (await guard.onRejected(outcome.decision, request, response)) as Response | undefined
    return own === undefined ? response : withHeaders(own, outcome.headers)
  }
  const limit = async (request: Request, origin?: FetchOrigin): Promise<Response | null> => {
    if (guard.countsByResponse) throw responseUnknown('countWhen')
    const outcome = await admit(request, [origin])
    if (outcome.kind !== 'ALLOWED') return reject(outcome, request)
    if (outcome.release === undefined) return null
    outcome.release()
    throw responseUnknown('The algorithm CONCURRENCY')
  }
  const wrap: FetchRateLimit['wrap'] =
    (handler) =>
    async (request, ...rest) => {
      const outcome = await admit(request, rest)
      if (outcome.kind !== 'ALLOWED') return reject(outcome, request)
      const { release } = outcome
      if (!guard.countsByResponse && release === undefined)
        return withHeaders(await handler(request, ...rest), outcome.headers)
      let status = failedStatus
      try {
        const response = withHeaders(await handler(request, ...rest), outcome.headers)
        status = response.status
        return release === undefined ? response : releaseAfter(response, release)
      } catch (error) {
        release?.()
        throw error
      } finally {
        if (guard.countsByResponse) await guard.onResponse(outcome, status, request)
      }
    }
  return Object.assign(limit, { wrap, close })
}

/** The status that runtimes send if a handler throws. */
const failedStatus = 500

const responseUnknown = (feature: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `${feature} needs the response to allowed requests, which limit(request) does not see. Use limit.wrap(handler).`,
  )

function remoteAddressIn(origin: unknown): string | undefined {
  const address = (origin as FetchOrigin | null | undefined)?.remoteAddress
  return typeof address === 'string' ? address : undefined
}
