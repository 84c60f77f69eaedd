import type { LimitScope } from '../../http/place.js'
import type { FastifyRoute } from './fastify.js'

/** Key in the config of a route. Fastify copies the config, symbols included, and passes that copy to every request. */
const scopeOfConfig = Symbol('fluxgate.scope')

/** More methods than this are listed as `ALL`. */
const mostNamedMethods = 4

/** With the URL and the method that it was made for: routes may be copied, config included. */
interface RouteScope extends Pick<FastifyRoute, 'url' | 'method'> {
  readonly scope: LimitScope
}

const registered = ({ config }: FastifyRoute): RouteScope | undefined =>
  (config as { [scopeOfConfig]?: RouteScope } | undefined)?.[scopeOfConfig]

/**
 * The scopes of routes: each route definition is one, whatever number of methods it names. A HEAD route that Fastify adds to
 * a GET route belongs to that one.
 */
export class FastifyScopes {
  readonly #exposesHead: boolean
  readonly #hasGet: (url: string) => boolean
  readonly #getRoutes: { readonly route: FastifyRoute; readonly scope: LimitScope }[] = []
  readonly #ofUnseen = new WeakMap<object, LimitScope>()

  /** `exposesHead`: the application's `exposeHeadRoutes`. `hasGet`: whether there is a GET route of this URL. */
  constructor(exposesHead: boolean, hasGet: (url: string) => boolean) {
    this.#exposesHead = exposesHead
    this.#hasGet = hasGet
  }

  /** Called for every route when it is registered, before Fastify copies its config. */
  register(route: FastifyRoute & { config?: object | undefined }): void {
    const { url, method } = route
    const known = registered(route)
    const isOwn = known?.url === url && known?.method === method
    const scope = isOwn && known ? known.scope : (this.#getOf(route)?.scope ?? newScope(route, method))
    route.config = { ...route.config, [scopeOfConfig]: { scope, url, method } }
    if (hasMethod(route, 'GET') && (route.exposeHeadRoute ?? this.#exposesHead))
      this.#getRoutes.push({ route: { ...route }, scope })
  }

  /** The scope of a route that was registered, or that a request was found to be for. */
  of(route: FastifyRoute): LimitScope {
    const config: object = route.config ?? route
    const known = registered(route)?.scope ?? this.#ofUnseen.get(config)
    if (known !== undefined) return known
    // The route was registered before the plugin.
    const isOfGet = route.method === 'HEAD' && route.exposeHeadRoute === true && this.#hasGet(route.url ?? '')
    const scope = newScope(route, isOfGet ? 'GET' : route.method)
    this.#ofUnseen.set(config, scope)
    return scope
  }

  /** The GET route that Fastify adds this HEAD route to: it hands over the very options of that one. */
  #getOf(route: FastifyRoute) {
    if (route.method !== 'HEAD') return undefined
    const url = withoutSlash(route.url)
    return this.#getRoutes.findLast(
      ({ route: get }) =>
        get.handler === route.handler && get.constraints === route.constraints && withoutSlash(get.url) === url,
    )
  }
}

function newScope({ url, constraints }: FastifyRoute, method: FastifyRoute['method']): LimitScope {
  const methods = [method ?? []].flat().sort()
  const identity = JSON.stringify([methods, url, constraints], (_, value) =>
    value instanceof RegExp ? `${value}` : value,
  )
  return { name: `${methods.length > mostNamedMethods ? 'ALL' : methods}:${url}`, identity }
}

const hasMethod = ({ method }: FastifyRoute, name: string): boolean => [method ?? []].flat().includes(name)

const withoutSlash = (url = ''): string => url.replace(/\/$/, '')
