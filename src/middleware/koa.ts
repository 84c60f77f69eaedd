/** Entry `fluxgate-js/koa`: middleware for Koa. */
import { type KoaContext, type KoaMiddleware, koaMiddleware } from './adapters/koa.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { KoaContext, KoaRateLimit, RateLimitOptions }

type KoaRateLimit<Context extends KoaContext> = KoaMiddleware<Context> & {
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
export function rateLimit<Context extends KoaContext = KoaContext>(
  options: RateLimitOptions<Context>,
): KoaRateLimit<Context> {
  const { guard, close } = guardOf(options)
  return Object.assign(koaMiddleware(guard), { close })
}
