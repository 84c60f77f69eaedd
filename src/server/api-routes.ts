import type { EventStreams } from './event-streams.js'
import { openApiOf } from './openapi/openapi.js'
import type { ApiParts } from './parts.js'
import { json, type Route, route } from './request/route.js'
import { candidateRoutes } from './routes/candidate-routes.js'
import { checkRoutes } from './routes/check-routes.js'
import { consoleRoutes } from './routes/console-routes.js'
import { documentRoutes } from './routes/document-routes.js'
import { eventRoutes } from './routes/event-routes.js'
import { explainRoutes } from './routes/explain/explain-routes.js'
import { healthRoutes } from './routes/health-routes.js'
import { banRoutes } from './routes/keys/ban-routes.js'
import { bucketRoutes } from './routes/keys/bucket-routes.js'
import { overrideRoutes } from './routes/keys/override-routes.js'
import { reservationRoutes } from './routes/reservation-routes.js'
import { ruleRoutes } from './routes/rule-routes.js'
import { ruleSetRoutes } from './routes/rule-set-routes.js'
import { statisticsRoutes } from './routes/statistics-routes.js'
import { openApiSchema } from './schemas/health-schema.js'

/** All routes of the API, in the order of the OpenAPI document. */
export function apiRoutes(parts: ApiParts, events: EventStreams): Route[] {
  const routes = [
    ...checkRoutes(parts.gate),
    ...reservationRoutes(parts.gate),
    ...explainRoutes(parts),
    ...ruleSetRoutes(parts),
    ...candidateRoutes(parts),
    ...ruleRoutes(parts),
    ...documentRoutes(parts),
    ...overrideRoutes(parts),
    ...banRoutes(parts),
    ...bucketRoutes(parts),
    ...statisticsRoutes(parts),
    ...eventRoutes(events),
    ...healthRoutes(parts),
    ...consoleRoutes(parts),
  ]
  routes.push(openApiRoute(routes, parts))
  return routes
}

/** The document is built on the first request and includes this route. */
function openApiRoute(routes: readonly Route[], { version, requiredTokens }: ApiParts): Route {
  let document: unknown
  return route({
    method: 'GET',
    path: '/openapi.json',
    name: 'openApi',
    summary: 'Get this OpenAPI document.',
    group: 'Operations',
    access: 'PUBLIC',
    responses: { 200: { description: 'The OpenAPI 3.1 document.', schema: openApiSchema } },
    handle() {
      document ??= openApiOf(routes, version, requiredTokens)
      return json(document)
    },
  })
}
