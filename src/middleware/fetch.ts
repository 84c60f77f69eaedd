/** Entry `fluxgate-js/fetch`: for servers that map a `Request` to a `Response`. */
import { type FetchLimit, type FetchOrigin, fetchLimit, type RemoteAddressOf } from './adapters/fetch.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { FetchOrigin, FetchRateLimit, FetchRateLimitOptions, RateLimitOptions, RemoteAddressOf }

type FetchRateLimitOptions = RateLimitOptions<Request> & {
  /** Returns the socket's remote address from the arguments that the runtime passes to a wrapped handler. */
  readonly remoteAddress?: RemoteAddressOf | undefined
}

type FetchRateLimit = FetchLimit & {
  /** Rejects delayed requests with 503 and closes the store if the limit opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limit for fetch-style handlers. Call it with a request to get a 429 response or null, or wrap a handler.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * const limit = rateLimit({ capacity: 100, window: '1m' })
 * export default { fetch: limit.wrap((request) => new Response('hello')) }
 */
export function rateLimit(options: FetchRateLimitOptions): FetchRateLimit {
  const { remoteAddress, ...others } = options ?? {}
  const { guard, close } = guardOf<Request>(options && (others as RateLimitOptions<Request>))
  return Object.assign(fetchLimit(guard, remoteAddress), { close })
}
