import type { ApiParts } from './api-parts.js'
import type { Route } from './route.js'
import { checkRoutes } from './routes/check-routes.js'
import { healthRoutes } from './routes/health-routes.js'

/** Everything that can be asked for, in the order in which the OpenAPI document lists it. */
export const apiRoutes = (parts: ApiParts): Route[] => [...checkRoutes(parts.gate), ...healthRoutes(parts)]
