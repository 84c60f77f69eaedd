/** Entry `fluxgate-js/fastify`: plugin for Fastify 5. */
import type { GuardOptions } from '../http/guard-options.js'
import { configInvalid } from '../validation/config-invalid.js'
import { wrongValue } from '../validation/kind.js'
import {
  type FastifyHook,
  type FastifyReply,
  type FastifyRequest,
  type FastifyRoute,
  limitReply,
} from './fastify/request-hook.js'
import { RouteScopes } from './fastify/route-scopes.js'
import type { HandledLimit, NamedLimits, RateLimitOptions, SingleLimit } from './limits/create-guard.js'
import { type RouteGuard, type RouteLimit, RouteLimits } from './limits/route-limits.js'

export type { ContextCustomizer, CountedResponse, RejectionMessage } from '../http/guard-options.js'
export type { FastifyApp, FastifyRateLimitOptions, FastifyReply, FastifyRequest, RateLimitOptions, RouteLimit }

/** The functions of an option as methods, whose parameters are bivariant, so that hooks may use Fastify's own types. */
type Bivariant<T> = T extends (...args: infer Args) => infer Result ? { method(...args: Args): Result }['method'] : T

type EdgeOptions = GuardOptions<FastifyRequest, FastifyReply>

/** Options of the plugin: the limit, and how requests are read and rejected. */
type FastifyRateLimitOptions = { readonly [Name in keyof EdgeOptions]: Bivariant<EdgeOptions[Name]> } & {
  /**
   * The Fastify hook in which requests are limited. `preHandler` runs after the body has been parsed and validated, for a `key`
   * or `permits` that depend on it. Default `onRequest`.
   */
  readonly hook?: 'onRequest' | 'preHandler' | undefined
} & (SingleLimit<FastifyRequest> | NamedLimits<FastifyRequest> | HandledLimit)

/** The part of a Fastify instance that the plugin uses. */
interface FastifyApp {
  /** Adds the hook that limits requests. */
  addHook(name: 'onRequest' | 'preHandler', hook: FastifyHook<FastifyRequest>): unknown
  /** Adds a hook that validates the limit of each route when it is registered. */
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): unknown
  /** Adds a hook that runs when the application starts or closes. */
  addHook(name: 'onReady' | 'preClose', hook: (done: () => void) => void): unknown
  /** Marks the application as limited, so that stacked limits are recognised. */
  decorate(name: symbol, value: unknown): unknown
  /** Returns true if the application is already limited. */
  hasDecorator(name: symbol): boolean
  /** Adds `request.rateLimit`. */
  decorateRequest(name: 'rateLimit', value: null): unknown
  /** Returns true if another limit has added `request.rateLimit`. */
  hasRequestDecorator(name: 'rateLimit'): boolean
  /** Lists the registered routes. If the list is not empty, the plugin was registered after some routes. */
  printRoutes(): string
  /** Returns true if a GET route with this URL is registered. */
  hasRoute(route: { method: 'GET'; url: string }): boolean
  /** The options of the instance, such as `exposeHeadRoutes`. */
  readonly initialConfig: object
}

/** Decorator that marks an application which already has a limit. */
const limited = Symbol('fluxgate.limited')

/**
 * Fastify plugin that limits all routes of the application. A route may have its own limit in `config.rateLimit`. Rejected
 * requests get 429 with a problem document; allowed ones get rate limit headers. The decision is in `request.rateLimit`.
 *
 * @example
 * await app.register(rateLimit, { capacity: 100, window: '1m' })
 */
export const rateLimit = Object.assign(
  (app: FastifyApp, options: FastifyRateLimitOptions, done: (error?: Error) => void): void => {
    try {
      limit(app, withoutRegisterOptions(options))
    } catch (error) {
      // A thrown error would end the process; passed to `done`, it rejects `register`.
      done(error as Error)
      return
    }
    done()
  },
  {
    // Applies the plugin to the whole application instead of an encapsulated scope.
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'fluxgate',
    [Symbol.for('plugin-meta')]: { name: 'fluxgate', fastify: '>=5' },
  },
)

function limit(app: FastifyApp, { hook = 'onRequest', ...options }: FastifyRateLimitOptions): void {
  if (hook !== 'onRequest' && hook !== 'preHandler')
    throw configInvalid('Options of rateLimit', [
      { path: 'hook', message: wrongValue(hook, "'onRequest' or 'preHandler'") },
    ])
  const limits = new RouteLimits(options as RateLimitOptions<FastifyRequest, FastifyReply>)
  // Added here, so that all requests have the same hidden class.
  if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', null)
  const isStacked = app.hasDecorator(limited)
  if (!isStacked) app.decorate(limited, true)
  const guardOf = watchRoutes(app, limits)
  app.addHook(hook, (request, reply, done) => {
    const routeGuard = guardOf(request)
    if (routeGuard === undefined) done()
    else limitReply(routeGuard, request, reply, isStacked, done)
  })
  // `preClose` runs before the server waits for open requests, which include delayed ones.
  app.addHook('preClose', (closed) => {
    limits.close().then(closed, closed)
  })
}

/**
 * Returns a function that finds the guard of a request, or undefined for a route without a limit. Fastify creates the route
 * options of a request on each access, which is expensive. If every route has been seen through `onRoute` and none has its own
 * limit, requests skip that access.
 */
function watchRoutes(app: FastifyApp, limits: RouteLimits<FastifyRequest, FastifyReply>) {
  const scopes = new RouteScopes(exposesHead(app), (url) => app.hasRoute({ method: 'GET', url }))
  const guardOfRoute = (route: FastifyRoute): RouteGuard<FastifyRequest, FastifyReply> | undefined =>
    limits.guardOf(limitOf(route), () => scopes.of(route))
  const seesAllRoutes = app.printRoutes() === '(empty tree)'
  const routes: FastifyRoute[] = []
  let hasRouteLimits = true
  app.addHook('onRoute', (route) => {
    scopes.register(route)
    // Throws for an invalid limit, before the first request.
    guardOfRoute(route)
    routes.push(route)
  })
  // Evaluated in `onReady`, because hooks of other plugins may still change the route options.
  app.addHook('onReady', (done) => {
    hasRouteLimits = !seesAllRoutes || routes.some((route) => limitOf(route) !== undefined)
    done()
  })
  return (request: FastifyRequest) => (hasRouteLimits ? guardOfRoute(request.routeOptions) : limits.main)
}

/** The limit in the config of a route; undefined if the route has none of its own. */
const limitOf = ({ config }: FastifyRoute): unknown => (config as { rateLimit?: unknown } | undefined)?.rateLimit

/** Removes the options that `register` itself understands. */
function withoutRegisterOptions<Options extends object>(options: Options): Options {
  const { prefix, logLevel, logSerializers, ...own } = options as Options & Record<string, unknown>
  return own as Options
}

/** Fastify adds a HEAD route to each GET route by default. */
const exposesHead = ({ initialConfig }: FastifyApp): boolean =>
  !('exposeHeadRoutes' in initialConfig) || initialConfig.exposeHeadRoutes !== false
