/** Entry `fluxgate-js/compat/fastify-rate-limit`: a plugin with the options of `@fastify/rate-limit` 11. */
import { type AppliedLimit, applyLimit, type CallOptions, limitHook, normalizeIP } from './fastify-rate-limit/limit.js'
import {
  completeSettings,
  type ErrorResponseContext,
  type PluginOptions,
  type RateLimitOptions,
  type Settings,
} from './fastify-rate-limit/settings.js'
import { type LimitStore, openStore } from './fastify-rate-limit/stores.js'

export type { AppliedLimit, CallOptions, ErrorResponseContext, PluginOptions, RateLimitOptions }
export { normalizeIP }

/** The part of a Fastify instance that the plugin uses. */
interface FastifyApp {
  decorate(name: string, value: unknown): unknown
  hasDecorator(name: string): boolean
  decorateRequest(name: symbol, value: unknown): unknown
  addHook(name: 'onRoute', hook: (route: any) => void): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

async function limitRoutes(app: FastifyApp, options: PluginOptions): Promise<void> {
  const { global: isGlobal = true, enableDraftSpec } = options
  const settings = completeSettings(options, enableDraftSpec === true)
  const store = openStore(options, settings)
  const ran = Symbol('fluxgate.rateLimitRan')
  const limitOf = (own: RateLimitOptions | undefined, routeInfo: unknown): readonly [LimitStore, Settings] => {
    if (own === undefined) return [store, settings]
    const merged = completeSettings({ ...settings, ...own }, enableDraftSpec === true)
    return [store.child({ ...merged, routeInfo }), merged]
  }
  app.addHook('onClose', () => store.close())
  app.decorateRequest(ran, false)
  if (!app.hasDecorator('createRateLimit'))
    app.decorate('createRateLimit', (own?: RateLimitOptions) => {
      const limit = limitOf(own, {})
      return (request: any, call?: CallOptions) => applyLimit(...limit, request, call)
    })
  if (!app.hasDecorator('rateLimit'))
    app.decorate('rateLimit', (own?: RateLimitOptions) => limitHook(...limitOf(own, {}), ran))
  app.addHook('onRoute', (route) => {
    const own = route.config?.rateLimit
    if (own === undefined || own === null) {
      if (isGlobal) addHook(route, settings.hook, limitHook(store, settings, ran))
      return
    }
    if (own === false) return
    if (typeof own !== 'object') throw new Error('Unknown value for route rate-limit configuration')
    const limit = limitOf(own, route)
    addHook(route, limit[1].hook, limitHook(...limit, ran))
  })
}

function addHook(route: any, name: string, hook: unknown): void {
  const existing = route[name]
  route[name] = existing === undefined || existing === null ? [hook] : [existing, hook].flat()
}

/**
 * Fastify plugin with the options of `@fastify/rate-limit`.
 *
 * @example
 * await app.register(rateLimit, { max: 100, timeWindow: '1 minute' })
 */
export const fastifyRateLimit = Object.assign(limitRoutes, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@fastify/rate-limit',
  [Symbol.for('plugin-meta')]: { name: '@fastify/rate-limit', fastify: '5.x' },
})

export { fastifyRateLimit as default, fastifyRateLimit as rateLimit }
