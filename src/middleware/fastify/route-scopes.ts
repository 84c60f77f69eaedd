import type { LimitScope } from '../limits/route-limits.js'
import type { FastifyRoute } from './request-hook.js'

/** Key in the config of a route. Fastify copies the config, symbols included, and passes the copy to every request. */
const scopeKey = Symbol('fluxgate.scope')

/** A scope, with the URL and method that it was created for: an application may copy routes, config included. */
interface RegisteredScope extends Pick<FastifyRoute, 'url' | 'method'> {
  readonly scope: LimitScope
}

const registeredScope = ({ config }: FastifyRoute): RegisteredScope | undefined =>
  (config as { [scopeKey]?: RegisteredScope } | undefined)?.[scopeKey]

/**
 * The scopes of routes. A route with several methods is one scope. A HEAD route that Fastify adds to a GET route belongs to
 * the scope of the GET route.
 */
export class RouteScopes {
  readonly #exposesHead: boolean
  readonly #hasGet: (url: string) => boolean
  readonly #getRoutes: { readonly route: FastifyRoute; readonly scope: LimitScope }[] = []
  readonly #unregistered = new WeakMap<object, LimitScope>()

  /** `exposesHead` is the application's `exposeHeadRoutes`. `hasGet` returns true if the URL has a GET route. */
  constructor(exposesHead: boolean, hasGet: (url: string) => boolean) {
    this.#exposesHead = exposesHead
    this.#hasGet = hasGet
  }

  /** Called for every route that is registered, before Fastify copies its config. */
  register(route: FastifyRoute & { config?: object | undefined }): void {
    const { url, method } = route
    const known = registeredScope(route)
    const isSameRoute = known?.url === url && known?.method === method
    const scope = isSameRoute && known ? known.scope : (this.#getRouteOf(route)?.scope ?? createScope(route, method))
    route.config = { ...route.config, [scopeKey]: { scope, url, method } }
    if (methodsOf(method).includes('GET') && (route.exposeHeadRoute ?? this.#exposesHead))
      this.#getRoutes.push({ route: { ...route }, scope })
  }

  of(route: FastifyRoute): LimitScope {
    const config: object = route.config ?? route
    const known = registeredScope(route)?.scope ?? this.#unregistered.get(config)
    if (known !== undefined) return known
    // The route was registered before the plugin.
    const belongsToGet = route.method === 'HEAD' && route.exposeHeadRoute === true && this.#hasGet(route.url ?? '')
    const scope = createScope(route, belongsToGet ? 'GET' : route.method)
    this.#unregistered.set(config, scope)
    return scope
  }

  /** Finds the GET route that Fastify adds this HEAD route to. Fastify passes on the same option objects. */
  #getRouteOf(route: FastifyRoute) {
    if (route.method !== 'HEAD') return undefined
    const url = withoutTrailingSlash(route.url)
    return this.#getRoutes.findLast(
      ({ route: get }) =>
        get.handler === route.handler && get.constraints === route.constraints && withoutTrailingSlash(get.url) === url,
    )
  }
}

/** A route with more methods than this is named `ALL`. */
const maxNamedMethods = 4

function createScope({ url, constraints }: FastifyRoute, method: FastifyRoute['method']): LimitScope {
  const methods = methodsOf(method).sort()
  const identity = JSON.stringify([methods, url, constraints], (_, value) =>
    value instanceof RegExp ? `${value}` : value,
  )
  return { name: `${methods.length > maxNamedMethods ? 'ALL' : methods}:${url}`, identity }
}

const methodsOf = (method: FastifyRoute['method']): string[] => [method ?? []].flat()

const withoutTrailingSlash = (url = ''): string => url.replace(/\/$/, '')
