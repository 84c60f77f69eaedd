import { createServer, type Server } from 'node:http'
import type { Config } from '../../config/config.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { RuleSet } from '../../core/rule.js'
import { pathIs } from '../../gateway/routes/predicates.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import type { Origin } from '../../gateway/upstream/origin.js'

/** An example upstream. It answers every request with a greeting that shows the forwarded identity, method and path. */
export function demoUpstream(): Server {
  return createServer(({ headers, method, url }, response) => {
    const hello = headers['x-user-id'] ?? headers['x-forwarded-for'] ?? 'you'
    const body = `${JSON.stringify({ hello, method, path: url?.replace(/\?.*$/s, '') })}\n`
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
    response.end(body)
  })
}

/** Default identity headers for the example, whose rules count by user and by API key. */
export const withDemoIdentities = (config: Config): Config => ({
  ...config,
  ratelimit: {
    userIdHeader: 'X-User-Id',
    apiKeyHeader: 'X-API-Key',
    ...omitUndefined(config.ratelimit),
  } as Config['ratelimit'],
})

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
