/** `fluxgate-js/hono` */
import { type HonoContext, type HonoMiddleware, honoMiddleware } from './adapters/hono.js'
import { guardOf, type RateLimitOptions } from './limits/guard-of.js'

export type { ContextCustomizer } from '../http/guard.js'
export type { HonoContext, HonoRateLimit, HonoRateLimitOptions, RateLimitOptions }

type HonoRateLimitOptions<Context extends HonoContext> = RateLimitOptions<Context> & {
  /** The other end of the connection, where it is not `@hono/node-server` that says so. */
  readonly remoteAddress?: ((context: Context) => string | undefined) | undefined
}

type HonoRateLimit<Context extends HonoContext> = HonoMiddleware<Context> & {
  /** Refuses those who are held, and closes what was made for this middleware. */
  close(): Promise<void>
}

export function rateLimit<Context extends HonoContext = HonoContext>(
  options: HonoRateLimitOptions<Context>,
): HonoRateLimit<Context> {
  const { remoteAddress, ...others } = options ?? {}
  const { guard, close } = guardOf<Context>(options && (others as RateLimitOptions<Context>))
  return Object.assign(honoMiddleware(guard, remoteAddress), { close })
}
