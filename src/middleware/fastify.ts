/** `fluxgate-js/fastify` */
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
import type { HandledLimit, LoneLimit, RateLimitOptions } from './limits/guard-of.js'
import { type RouteLimit, RouteLimits } from './limits/route-limits.js'

export type { ContextCustomizer, FastifyApp, FastifyRateLimitOptions, FastifyRequest, RateLimitOptions, RouteLimit }

/** A hook that may call its request what Fastify calls it: `register` has no place to say so otherwise. */
type Hook<F extends (...given: never[]) => unknown> = { hook(...given: Parameters<F>): ReturnType<F> }['hook']

type Hooks = {
  readonly permits?: number | Hook<(request: FastifyRequest) => number> | undefined
  readonly skip?: Hook<(request: FastifyRequest) => boolean | Promise<boolean>> | undefined
  readonly customize?: Hook<ContextCustomizer<FastifyRequest>> | undefined
}

type FastifyRateLimitOptions = Omit<GuardOptions<FastifyRequest>, keyof Hooks> & Hooks & (LoneLimit | HandledLimit)

/** As much of Fastify as the plugin needs. */
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

/** Says that an application has a limit already. */
const limited = Symbol('fluxgate.limited')

/** A plugin: `app.register(rateLimit, { capacity: 100, window: '1m' })`. */
export const rateLimit = Object.assign(
  (app: FastifyApp, options: FastifyRateLimitOptions, done: (error?: Error) => void): void => {
    try {
      limit(app, withoutRegisterOptions(options))
    } catch (error) {
      // Fastify would let it end the process, although whoever registers the plugin may want to hear of it.
      done(error as Error)
      return
    }
    done()
  },
  {
    // The plugin is for the whole application, not only for what is registered inside it.
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
  // Before the server waits for those who are held.
  app.addHook('preClose', (closed) => {
    limits.close().then(closed, closed)
  })
}

/**
 * What a request tells of its route Fastify puts together whenever it is asked. Therefore nobody asks if it is known before
 * the first request that no route says anything: all of them have been seen coming.
 */
function routesOf(app: FastifyApp, limits: RouteLimits<FastifyRequest>): FastifyRoutes {
  const hasGet = (url: string): boolean => app.hasRoute({ method: 'GET', url })
  const scopes = new FastifyScopes(exposesHead(app), hasGet)
  const routes = { maySpeak: true, scopes }
  const haveAllBeenSeen = app.printRoutes() === '(empty tree)'
  const seen: FastifyRoute[] = []
  app.addHook('onRoute', (route) => {
    // Mistakes in what a route says are found before it is asked for.
    scopes.register(route)
    placeOfRoute(limits.of, route, scopes)
    seen.push(route)
  })
  // Not before: hooks of others may still change what a route says.
  app.addHook('onReady', (done) => {
    routes.maySpeak = !haveAllBeenSeen || seen.some((route) => limitOf(route) !== undefined)
    done()
  })
  return routes
}

/** What Fastify itself takes among the options of a plugin. */
function withoutRegisterOptions<Options extends object>(options: Options): Options {
  const { prefix, logLevel, logSerializers, ...own } = options as Options & Record<string, unknown>
  return own as Options
}

/** Fastify adds HEAD routes to GET routes unless it is told otherwise. */
const exposesHead = ({ initialConfig }: FastifyApp): boolean =>
  !('exposeHeadRoutes' in initialConfig) || initialConfig.exposeHeadRoutes !== false
