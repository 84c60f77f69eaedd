/** `fluxgate-js/fetch`: where a server is a function from `Request` to `Response`. */
import { type FetchLimit, type FetchOrigin, fetchLimit, type RemoteAddressOf } from './adapters/fetch.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { FetchOrigin, FetchRateLimit, FetchRateLimitOptions, RateLimitOptions, RemoteAddressOf }

type FetchRateLimitOptions = RateLimitOptions<Request> & {
  /** The other end of the connection, for handlers that are wrapped: from what the runtime hands along. */
  readonly remoteAddress?: RemoteAddressOf | undefined
}

type FetchRateLimit = FetchLimit & {
  /** Refuses those who are held, and closes what was made for this limit. */
  close(): Promise<void>
}

export function rateLimit(options: FetchRateLimitOptions): FetchRateLimit {
  const { remoteAddress, ...others } = options ?? {}
  const { guard, close } = guardOf<Request>(options && (others as RateLimitOptions<Request>))
  return Object.assign(fetchLimit(guard, remoteAddress), { close })
}
