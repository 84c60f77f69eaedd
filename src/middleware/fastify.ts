/** Entry `fluxgate-js/fastify`: plugin for Fastify 5. */
import type { ContextCustomizer, GuardOptions } from '../http/guard.js'
import {
  type FastifyHook,
  type FastifyRequest,
  type FastifyRoute,
  type FastifyRoutes,
  fastifyHook,
  limitOf,
  placeOfRoute,
} from './adapters/fastify.js'
import { FastifyScopes } from './adapters/fastify-scopes.js'
import type { HandledLimit, RateLimitOptions, SingleLimit } from './limits/guard-of.js'
import { type RouteLimit, RouteLimits } from './limits/route-limits.js'

export type { ContextCustomizer, FastifyApp, FastifyRateLimitOptions, FastifyRequest, RateLimitOptions, RouteLimit }

/** Declares a hook as a method, whose parameters are bivariant, so that hooks may use Fastify's own request type. */
type Hook<F extends (...given: never[]) => unknown> = { hook(...given: Parameters<F>): ReturnType<F> }['hook']

type Hooks = {
  readonly permits?: number | Hook<(request: FastifyRequest) => number> | undefined
  readonly skip?: Hook<(request: FastifyRequest) => boolean | Promise<boolean>> | undefined
  readonly customize?: Hook<ContextCustomizer<FastifyRequest>> | undefined
}

type FastifyRateLimitOptions = Omit<GuardOptions<FastifyRequest>, keyof Hooks> & Hooks & (SingleLimit | HandledLimit)

/** The part of a Fastify instance that the plugin uses. */
interface FastifyApp {
  addHook(name: 'onRequest', hook: FastifyHook<FastifyRequest>): unknown
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): unknown
  addHook(name: 'onReady' | 'preClose', hook: (done: () => void) => void): unknown
  decorate(name: symbol, value: unknown): unknown
  hasDecorator(name: symbol): boolean
  printRoutes(): string
  hasRoute(route: { method: 'GET'; url: string }): boolean
  readonly initialConfig: object
}

/** Decorator that marks an application which already has a limit. */
const limited = Symbol('fluxgate.limited')

/**
 * Fastify plugin that limits all routes of the application. A route may have its own limit in `config.rateLimit`. Rejected
 * requests get 429 with a problem document; allowed ones get rate limit headers.
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

function limit(app: FastifyApp, options: RateLimitOptions<FastifyRequest>): void {
  const limits = new RouteLimits(options)
  const isStacked = app.hasDecorator(limited)
  if (!isStacked) app.decorate(limited, true)
  app.addHook('onRequest', fastifyHook(limits.of, routesOf(app, limits), isStacked))
  // `preClose` runs before the server waits for open requests, which include delayed ones.
  app.addHook('preClose', (closed) => {
    limits.close().then(closed, closed)
  })
}

/**
 * Fastify builds the route options of a request on each access, which is expensive. If every route has been seen through
 * `onRoute` and none has its own limit, requests skip that access.
 */
function routesOf(app: FastifyApp, limits: RouteLimits<FastifyRequest>): FastifyRoutes {
  const hasGet = (url: string): boolean => app.hasRoute({ method: 'GET', url })
  const scopes = new FastifyScopes(exposesHead(app), hasGet)
  const routes = { maySpeak: true, scopes }
  const seesAllRoutes = app.printRoutes() === '(empty tree)'
  const seen: FastifyRoute[] = []
  app.addHook('onRoute', (route) => {
    // Invalid limits of a route throw here, before the first request.
    scopes.register(route)
    placeOfRoute(limits.of, route, scopes)
    seen.push(route)
  })
  // Evaluated in `onReady`, because hooks of other plugins may still change the route options.
  app.addHook('onReady', (done) => {
    routes.maySpeak = !seesAllRoutes || seen.some((route) => limitOf(route) !== undefined)
    done()
  })
  return routes
}

/** Removes the options that `register` itself understands. */
function withoutRegisterOptions<Options extends object>(options: Options): Options {
  const { prefix, logLevel, logSerializers, ...own } = options as Options & Record<string, unknown>
  return own as Options
}

/** Fastify adds a HEAD route to each GET route by default. */
const exposesHead = ({ initialConfig }: FastifyApp): boolean =>
  !('exposeHeadRoutes' in initialConfig) || initialConfig.exposeHeadRoutes !== false
