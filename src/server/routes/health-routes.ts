import { contentTypes, negotiateFormat, renderMetrics } from '../../telemetry/exposition/exposition.js'
import type { ApiParts } from '../parts.js'
import { ApiProblem } from '../request/api-problem.js'
import { json, type Route, route } from '../request/route.js'
import { infoSchema, liveSchema, readyQuerySchema, readySchema } from '../schemas/health-schema.js'

const group = 'Operations'

/** Health probes, metrics and build information. */
export function healthRoutes({ health, metrics, info, isDraining }: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/health/live',
      name: 'live',
      summary: 'Liveness probe. Does not depend on other systems.',
      group,
      access: 'PUBLIC',
      responses: { 200: { description: 'The process is alive.', schema: liveSchema } },
      handle: () => json({ status: 'UP' }),
    }),
    route({
      method: 'GET',
      path: '/health/ready',
      name: 'ready',
      summary: 'Readiness probe. Succeeds while checks can be answered, even without the shared store.',
      group,
      access: 'PUBLIC',
      query: readyQuerySchema,
      responses: {
        200: { description: 'Ready. The status may be DEGRADED, unless `strict` is set.', schema: readySchema },
        503: {
          description: 'Not ready: the server is stopping or its gate is closed; with `strict`, its state is DEGRADED.',
          schema: readySchema,
        },
      },
      async handle({ query: { strict = false } }) {
        const { status, store, rules } = await health()
        const state = isDraining() ? 'STOPPING' : status
        const isReady = state === 'UP' || (state === 'DEGRADED' && !strict)
        return json(
          {
            status: state,
            store: { status: store.status, sinceAt: rounded(store.sinceAt), error: store.error },
            rules: { status: rules.status, sinceAt: rounded(rules.sinceAt), error: rules.error },
          },
          isReady ? 200 : 503,
        )
      },
    }),
    route({
      method: 'GET',
      path: '/metrics',
      name: 'metrics',
      summary: 'Get metrics in the Prometheus text format, or in OpenMetrics if the client accepts it.',
      group,
      access: 'ADMIN',
      responses: {
        200: {
          description: 'Prometheus text, version 0.0.4, or OpenMetrics, version 1.0.0.',
          type: ['text/plain', 'application/openmetrics-text'],
        },
      },
      async handle({ headers: { accept } }) {
        if (metrics === undefined)
          throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'This server is not configured to collect metrics.')
        const format = negotiateFormat(accept)
        const headers = { 'Content-Type': contentTypes[format], Vary: 'Accept' }
        return { status: 200, headers, text: renderMetrics(await metrics(), format) }
      },
    }),
    route({
      method: 'GET',
      path: '/info',
      name: 'info',
      summary: 'Get version, uptime and store types.',
      group,
      access: 'ADMIN',
      responses: { 200: { description: 'Version, uptime and store types.', schema: infoSchema } },
      async handle() {
        return json((await info?.()) ?? { name: 'fluxgate' })
      },
    }),
  ]
}

const rounded = (instant: number | null): number | null => (instant === null ? null : Math.round(instant))
