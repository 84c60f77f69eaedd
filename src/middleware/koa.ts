/** `fluxgate-js/koa` */
import { type KoaContext, type KoaMiddleware, koaMiddleware } from './adapters/koa.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { KoaContext, KoaRateLimit, RateLimitOptions }

type KoaRateLimit<Context extends KoaContext> = KoaMiddleware<Context> & {
  /** Refuses those who are held, and closes what was made for this middleware. */
  close(): Promise<void>
}

export function rateLimit<Context extends KoaContext = KoaContext>(
  options: RateLimitOptions<Context>,
): KoaRateLimit<Context> {
  const { guard, close } = guardOf(options)
  return Object.assign(koaMiddleware(guard), { close })
}
