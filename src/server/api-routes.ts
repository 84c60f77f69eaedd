import type { ApiParts } from './api-parts.js'
import type { EventStreams } from './event-streams.js'
import { openApiOf } from './openapi/openapi.js'
import { json, type Route, route } from './request/route.js'
import { bucketRoutes } from './routes/bucket-routes.js'
import { checkRoutes } from './routes/check-routes.js'
import { consoleRoutes } from './routes/console-routes.js'
import { documentRoutes } from './routes/document-routes.js'
import { eventRoutes } from './routes/event-routes.js'
import { healthRoutes } from './routes/health-routes.js'
import { overrideRoutes } from './routes/override-routes.js'
import { ruleRoutes } from './routes/rule-routes.js'
import { ruleSetRoutes } from './routes/rule-set-routes.js'
import { statisticsRoutes } from './routes/statistics-routes.js'
import { openApiSchema } from './schemas/health-schema.js'

/** Everything that can be asked for, in the order in which the OpenAPI document lists it. */
export function apiRoutes(parts: ApiParts, events: EventStreams): Route[] {
  const routes = [
    ...checkRoutes(parts.gate),
    ...ruleSetRoutes(parts),
    ...ruleRoutes(parts),
    ...documentRoutes(parts),
    ...overrideRoutes(parts),
    ...bucketRoutes(parts),
    ...statisticsRoutes(parts),
    ...eventRoutes(events),
    ...healthRoutes(parts),
    ...consoleRoutes(parts),
  ]
  routes.push(openApiRoute(routes, parts))
  return routes
}

/** Describes itself too. Made when it is first asked for. */
function openApiRoute(routes: readonly Route[], { version, asked }: ApiParts): Route {
  let document: unknown
  return route({
    method: 'GET',
    path: '/openapi.json',
    name: 'openApi',
    summary: 'This document.',
    group: 'Operations',
    access: 'PUBLIC',
    responses: { 200: { description: 'OpenAPI 3.1.', schema: openApiSchema } },
    handle() {
      document ??= openApiOf(routes, version, asked)
      return json(document)
    },
  })
}
