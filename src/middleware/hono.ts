/** Entry `fluxgate-js/hono`: middleware for Hono. */
import { type HonoContext, type HonoMiddleware, honoMiddleware } from './adapters/hono.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { HonoContext, HonoRateLimit, HonoRateLimitOptions, RateLimitOptions }

type HonoRateLimitOptions<Context extends HonoContext> = RateLimitOptions<Context> & {
  /** Returns the socket's remote address, for runtimes other than `@hono/node-server`. */
  readonly remoteAddress?: ((context: Context) => string | undefined) | undefined
}

type HonoRateLimit<Context extends HonoContext> = HonoMiddleware<Context> & {
  /** Rejects delayed requests with 503 and closes the store if the middleware opened it. */
  close(): Promise<void>
}

/**
 * Creates a rate limiting middleware. Rejected requests get 429 with a problem document; allowed ones get rate limit headers.
 *
 * @throws FluxGateError if an option is unknown or invalid
 * @example
 * app.use(rateLimit({ capacity: 100, window: '1m' }))
 */
export function rateLimit<Context extends HonoContext = HonoContext>(
  options: HonoRateLimitOptions<Context>,
): HonoRateLimit<Context> {
  const { remoteAddress, ...others } = options ?? {}
  const { guard, close } = guardOf<Context>(options && (others as RateLimitOptions<Context>))
  return Object.assign(honoMiddleware(guard, remoteAddress), { close })
}
