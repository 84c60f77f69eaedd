import type { RuleSet } from '../../core/rule.js'
import { pathIs } from '../../gateway/routes/predicates.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import type { Origin } from '../../gateway/upstream/origin.js'

/** One route per path of the rules, and a catch-all route. */
export function demoRoutes(ruleSets: readonly RuleSet[], origin: Origin): RouteDefinition[] {
  const routes = new Map<string, RouteDefinition>()
  for (const { id, path } of ruleSets.flatMap(({ rules }) => rules))
    if (path !== '/**' && !routes.has(path)) routes.set(path, route(id, path, origin))
  return [...routes.values(), route('everything-else', '/**', origin)]
}

const route = (id: string, path: string, origin: Origin): RouteDefinition => ({
  id,
  origin,
  predicates: [pathIs([path])],
  limits: [],
  pathChanges: [],
  requestHeaders: [],
  responseHeaders: [],
  preservesHost: false,
  timeouts: undefined,
})
